"""Public advisories of what is pinned, each read and answered: `scripts/advisories.json`.

`make outdated` shows the open ones, and `docs/security.md` all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal

from inference_blueprints.report.tables import TextTable

_FILE: Final = Path(__file__).with_suffix(".json")
State = Literal["fixed", "not reachable", "mitigated", "open"]


@dataclass(frozen=True)
class Advisory:
    """A weakness that somebody has published."""

    product: str
    id: str
    title: str
    affected: str
    """Releases, such as `<3.7.1`; "unknown" if the source does not say."""
    fixed: str
    """The first release without it; empty if none is known."""
    state: State
    """`fixed`: the pinned release has it no more. `not reachable`: no part of a platform uses it."""
    answer: str
    source: str
    date: str
    """When it was read."""


@dataclass(frozen=True)
class Advisories:
    """All advisories, and what was read without a finding."""

    advisories: Sequence[Advisory]
    pins: Mapping[str, str]
    """Name of the pin, by product."""
    nothing_found: Sequence[Mapping[str, str]]


def advisories() -> Advisories:
    """Return what was read."""
    document = json.loads(_FILE.read_text(encoding="utf-8"))
    return Advisories(
        advisories=[Advisory(**each) for each in document["advisories"]],
        pins=document["pins"],
        nothing_found=document["nothingFound"],
    )


def open_table(today: date) -> TextTable:
    """Return the advisories that nothing answers yet.

    today: Date from which ages count.
    """
    rows = tuple(
        (
            each.product,
            each.id,
            each.title,
            each.answer,
            str((today - date.fromisoformat(each.date)).days),
        )
        for each in advisories().advisories
        if each.state == "open"
    )
    return TextTable(
        "Open advisories, as read by hand: no database of advisories can be asked from here",
        ("Part", "Advisory", "What it is", "Why it is open"),
        ("Read, days ago",),
        rows,
    )
