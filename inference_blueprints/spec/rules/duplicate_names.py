"""The finding for duplicate names, which several rules use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.spec.wording import Path, duplicates, quote
from inference_contracts.errors import Finding


def duplicate_names(kind: str, names: Mapping[Path, str]) -> Iterator[Finding]:
    """Yield a finding for each name that occurred before."""
    paths = list(names)
    for index, name in duplicates(names.values()):
        yield Finding(paths[index], f"got {quote(name)}, another {kind} has this name; rename one of them")
