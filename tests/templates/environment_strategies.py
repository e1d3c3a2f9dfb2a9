"""Generated places of a platform, as far as they may change."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


def environments(account: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return what may change of where it is deployed."""
    optional: dict[str, st.SearchStrategy[Any]] = {
        "account": st.just(account),
        "dataRemoval": st.sampled_from(["retain", "destroy"]),
        "tags": st.dictionaries(
            st.sampled_from(["team", "cost-centre", "Owner"]), st.sampled_from(["search", "7", "a b:c"])
        ),
    }
    return st.fixed_dictionaries({}, optional=optional)
