"""Redrives the dead letters of a job: calls its function until it has seen all, and adds up what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Calls the function with an event and returns its answer.
Call = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """Which dead letters are redriven, and how."""

    reasons: tuple[str, ...]
    """Reasons of the dead letters; empty for all."""
    events: bool
    """Whether events that the job could not read are sent again."""
    dry_run: bool
    """Only count."""
    per_second: float
    """Most requests per second."""
    since_milliseconds: int
    """Leave out dead letters of before; milliseconds since 1970."""
    limit: int | None
    """Most dead letters to look at; None for all."""


@dataclass(slots=True)
class RedriveReport:
    """What became of dead letters."""

    seen: int = 0
    """Dead letters that were looked at."""
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Number by reason and outcome."""
    failures: list[str] = field(default_factory=list)
    """Messages of the first that failed."""

    @property
    def failed(self) -> int:
        """Dead letters that failed again or could not be read."""
        return sum(outcomes["failed"] + outcomes["unreadable"] for outcomes in self.counts.values())

    def document(self, *, dry_run: bool) -> dict[str, Any]:
        """Return the report as JSON.

        dry_run: Whether it only counted.
        """
        return {
            "dryRun": dry_run,
            "seen": self.seen,
            "counts": {reason: dict(outcomes) for reason, outcomes in sorted(self.counts.items())},
            "failures": self.failures,
        }


def redrive_letters(
    call: Call, choice: LetterChoice, progress: Callable[[RedriveReport], None]
) -> RedriveReport:
    """Redrive until all dead letters of now have been seen, or the limit is reached.

    call: Calls the function.
    choice: Which dead letters.
    progress: Told after each call.
    """
    report = RedriveReport()
    places: dict[str, Any] = {}
    while True:
        left = None if choice.limit is None else choice.limit - report.seen
        answer = call(
            {
                "reasons": list(choice.reasons),
                "events": choice.events,
                "dryRun": choice.dry_run,
                "perSecond": choice.per_second,
                "sinceMilliseconds": choice.since_milliseconds,
                **({} if left is None else {"limit": left}),
                **places,
            }
        )
        report.seen += answer["seen"]
        for reason, outcomes in answer["counts"].items():
            report.counts.setdefault(reason, Counter()).update(outcomes)
        report.failures += answer["failures"]
        progress(report)
        if answer["done"] or (choice.limit is not None and report.seen >= choice.limit):
            return report
        places = {"start": answer["start"], "end": answer["end"]}
