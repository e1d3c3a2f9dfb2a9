"""Asks CloudWatch for recorded series of a time, one value per step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from inference_decisions.promql.cloudwatch_promql import MetricSeries

#: Takes an expression, the first and the last time as seconds since the epoch, and the seconds between two.
Ask = Callable[[str, float, float, float], tuple[MetricSeries, ...]]
#: Values by time, in seconds since the epoch.
Values = Mapping[float, float]

STEP_SECONDS: Final = 300
HOURS_PER_STEP: Final = STEP_SECONDS / 3600
#: Asked at once: 288 values of a series.
_SPAN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedValues:
    """The recorded series of a platform in a time."""

    ask: Ask
    """Asks for an expression."""
    platform: str
    """`metadata.name`."""
    start: datetime
    end: datetime
    """`start`, `end`: The time."""

    @property
    def selector(self) -> str:
        """The selector of the platform's series."""
        return f'{{platform="{self.platform}"}}'

    def by(self, expression: str, *labels: str) -> Mapping[tuple[str, ...], Values]:
        """Return the values by the values of some labels. The value at a step's end stands for the step."""
        found: dict[tuple[str, ...], dict[float, float]] = defaultdict(dict)
        step, start = timedelta(seconds=STEP_SECONDS), self.start
        while start < self.end:
            until = min(start + _SPAN, self.end)
            for series in self.ask(expression, (start + step).timestamp(), until.timestamp(), STEP_SECONDS):
                found[tuple(series.labels.get(label, "") for label in labels)].update(series.points)
            start = until
        return found
