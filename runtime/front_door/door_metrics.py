"""Counts what the policy does, as text that Prometheus reads.

The policy serves it on its socket, and Envoy passes it on to whoever may read it.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Final

_PREFIX: Final = "door_"
#: Counters without labels, with what they count.
_COUNTERS: Final = {
    "requests": "Requests that Envoy asked about",
    "admitted": "Requests that were admitted",
    "settled": "Requests that were settled",
    "settled_again": "Lines whose reservation was settled before",
    "spent_nano": "Nano-dollars that were settled",
    "store_lost": "Questions to the store without an answer",
    "admitted_without_store": "Requests that were admitted while the store did not answer",
    "configuration_refused": "Configurations that were not taken",
    "records_lost": "Usage records that could not be delivered",
}


class DoorMetrics:
    """The numbers of one replica.

    gauges: By name, what it means and what returns it.
    """

    def __init__(self) -> None:
        self._counters: collections.Counter[str] = collections.Counter()
        self._refused: collections.Counter[str] = collections.Counter()
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self._counters[name] += number

    def refused(self, code: str) -> None:
        """Count a refusal by its code."""
        self._refused[code] += 1

    def text(self) -> bytes:
        """Return all in Prometheus's text format."""
        lines = []
        for name, meaning in _COUNTERS.items():
            full = f"{_PREFIX}{name}_total"
            lines += [f"# HELP {full} {meaning}.", f"# TYPE {full} counter", f"{full} {self._counters[name]}"]
        full = f"{_PREFIX}refused_total"
        lines += [f"# HELP {full} Requests that were refused, by code.", f"# TYPE {full} counter"]
        lines += [f'{full}{{code="{code}"}} {number}' for code, number in sorted(self._refused.items())]
        for name, (meaning, value) in self.gauges.items():
            full = f"{_PREFIX}{name}"
            lines += [f"# HELP {full} {meaning}.", f"# TYPE {full} gauge", f"{full} {value():.6g}"]
        return ("\n".join(lines) + "\n").encode()
