"""The clock of a controller: it begins with the run, and is faster than time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_DURATION = re.compile(r"\[(\d+(?:\.\d+)?)([smh])\]")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class RunClock:
    """A clock that is as right as any when the run begins, and then goes faster."""

    began: float
    """When the run began, in seconds since the epoch."""
    factor: float
    """How much faster it goes."""

    def of(self, real: float) -> float:
        """Return what it shows at a real time. Both are in seconds since the epoch."""
        return self.began + (real - self.began) * self.factor

    def real(self, shown: float) -> float:
        """Return the real time at which it shows a time."""
        return self.began + (shown - self.began) / self.factor

    def run_seconds(self, shown: float) -> float:
        """Return the seconds of the run at which it shows a time."""
        return (shown - self.began) / self.factor

    def shortened(self, query: str) -> str:
        """Return a PromQL query whose durations are as short as the clock is fast."""

        def shorter(found: re.Match[str]) -> str:
            seconds = float(found[1]) * _SECONDS[found[2]] / self.factor
            return f"[{max(1, round(seconds * 1000))}ms]"

        return _DURATION.sub(shorter, query)


def kubernetes_time(at: float) -> str:
    """Return a time as Kubernetes writes it, such as ``2026-11-01T00:00:00Z``."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
