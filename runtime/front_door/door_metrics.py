"""Counts what the policy does, as text that Prometheus reads.

The policy serves it at its socket, and at `DoorSettings.metrics_address` if that is set.
"""

from __future__ import annotations

import collections
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

_PREFIX: Final = "door_"
#: Counters without labels, with what they count.
_COUNTERS: Final = {
    "requests": "Requests that Envoy asked about",
    "admitted": "Requests that were admitted",
    "settled": "Requests that were settled",
    "settled_again": "Settlements that had been done before",
    "orphans": "Requests settled without a line of the log, because their replica or Envoy had died",
    "spent_nano": "Nano-dollars that were settled",
    "store_lost": "Requests for which the store did not answer",
    "admitted_without_store": "Requests that were admitted while the store did not answer",
    "configuration_refused": "Configurations that were not taken",
    "records_lost": "Usage records that were not delivered because too many waited",
    "decision_seconds": "Time that decisions took, in seconds",
}
#: Upper bounds of the time that the door adds, in seconds.
_ADDED: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class DoorMetrics:
    """The numbers of one replica."""

    def __init__(self) -> None:
        self._counters: collections.Counter[str] = collections.Counter()
        self._refused: collections.Counter[str] = collections.Counter()
        self._answers: collections.Counter[str] = collections.Counter()
        self._added = [0] * (len(_ADDED) + 1)
        self._added_seconds = 0.0
        self._seconds = 0.0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._labelled: dict[str, tuple[str, Callable[[], Iterable[tuple[str, float]]]]] = {}

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self._counters[name] += number

    def refused(self, code: str) -> None:
        """Count a refusal by its code."""
        self._refused[code] += 1

    def answered(self, status: int, added_seconds: float | None = None) -> None:
        """Count an answer, of a model or a refusal.

        status: 0 if the caller went before there was one.
        added_seconds: Time that the door added before the model had the request, if it did.
        """
        self._answers[f"{status // 100}xx" if status else "none"] += 1
        if added_seconds is not None:
            self._added[bisect_left(_ADDED, added_seconds)] += 1
            self._added_seconds += added_seconds

    def took(self, seconds: float) -> None:
        """Add the time of a decision."""
        self._seconds += seconds

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Add a number that is asked for when it is read."""
        self._gauges[name] = (meaning, value)

    def gauges(self, name: str, meaning: str, values: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """Add numbers of one name.

        values: Returns each number behind its labels, as text of Prometheus.
        """
        self._labelled[name] = (meaning, values)

    def text(self) -> bytes:
        """Return all in Prometheus's text format."""
        lines: list[str] = []
        for name, meaning in _COUNTERS.items():
            value = f"{self._seconds:.6f}" if name == "decision_seconds" else str(self._counters[name])
            lines += _lines(f"{name}_total", "counter", meaning, [("", value)])
        codes = [(f'code="{code}"', str(number)) for code, number in sorted(self._refused.items())]
        lines += _lines("refused_total", "counter", "Requests that were refused, by code", codes)
        classes = [(f'class="{each}"', str(number)) for each, number in sorted(self._answers.items())]
        lines += _lines("answers_total", "counter", "Answers and refusals, by class of their status", classes)
        lines += self._histogram()
        for name, (meaning, value_of) in self._gauges.items():
            lines += _lines(name, "gauge", meaning, [("", f"{value_of():.6g}")])
        for name, (meaning, values) in self._labelled.items():
            rows = [(labels, f"{number:.6g}") for labels, number in values()]
            lines += _lines(name, "gauge", meaning, rows)
        return ("\n".join(lines) + "\n").encode()

    def _histogram(self) -> list[str]:
        rows = []
        below = 0
        for bound, number in zip((*map(repr, _ADDED), "+Inf"), self._added, strict=True):
            below += number
            rows.append(f'{_PREFIX}added_seconds_bucket{{le="{bound}"}} {below}')
        return [
            f"# HELP {_PREFIX}added_seconds Time from a whole request to its first byte to the model.",
            f"# TYPE {_PREFIX}added_seconds histogram",
            *rows,
            f"{_PREFIX}added_seconds_sum {self._added_seconds:.6f}",
            f"{_PREFIX}added_seconds_count {below}",
        ]


def _lines(name: str, kind: str, meaning: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    full = f"{_PREFIX}{name}"
    values = [f"{full}{{{labels}}} {value}" if labels else f"{full} {value}" for labels, value in rows]
    return [f"# HELP {full} {meaning}.", f"# TYPE {full} {kind}", *values]
