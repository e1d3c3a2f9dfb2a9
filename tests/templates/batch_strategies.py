"""Generated teams and queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def batches(draw: Draw, models: Sequence[str], account: str) -> Document:
    """Return teams, and queues of some models, or neither."""
    if not draw(st.booleans()):
        return {}
    teams = [
        {
            "name": name,
            "principals": [f"arn:aws:iam::{account}:{kind}/{name}"],
            "monthlyBudgetUsd": draw(st.sampled_from([1, 5000.5])),
            **draw(_optional(dataPrefixes=st.sampled_from([[], [f"s3://{name}-data/"], ["s3://all/a/"]]))),
        }
        for name, kind in (("ads", "role"), ("search", "user/team"))[: draw(st.integers(1, 2))]
    ]
    rates = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
    queues = [
        {
            "name": f"queue-{index}",
            "model": draw(st.sampled_from(models)),
            "rates": rates,
            **draw(_optional(priority=st.integers(0, 100), deadlineHours=st.sampled_from([0.5, 336]))),
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    return {"teams": teams, **draw(_optional(batch=st.just({"queues": queues})))}


def _optional(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Return a mapping in which each key is there or not."""
    return st.fixed_dictionaries({}, optional=optional)
