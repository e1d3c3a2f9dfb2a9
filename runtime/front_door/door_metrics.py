"""Counts what the policy does, as text that Prometheus reads.

The policy serves it at its socket, and at `DoorSettings.metrics_address` if that is set.
"""

from __future__ import annotations

import collections
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


class DoorMetrics:
    """The numbers of one replica."""

    def __init__(self) -> None:
        self._counters: collections.Counter[str] = collections.Counter()
        self._refused: collections.Counter[str] = collections.Counter()
        self._seconds = 0.0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._labelled: dict[str, tuple[str, Callable[[], Iterable[tuple[str, float]]]]] = {}

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self._counters[name] += number

    def refused(self, code: str) -> None:
        """Count a refusal by its code."""
        self._refused[code] += 1

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
        for name, (meaning, value_of) in self._gauges.items():
            lines += _lines(name, "gauge", meaning, [("", f"{value_of():.6g}")])
        for name, (meaning, values) in self._labelled.items():
            rows = [(labels, f"{number:.6g}") for labels, number in values()]
            lines += _lines(name, "gauge", meaning, rows)
        return ("\n".join(lines) + "\n").encode()


def _lines(name: str, kind: str, meaning: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    full = f"{_PREFIX}{name}"
    values = [f"{full}{{{labels}}} {value}" if labels else f"{full} {value}" for labels, value in rows]
    return [f"# HELP {full} {meaning}.", f"# TYPE {full} {kind}", *values]
