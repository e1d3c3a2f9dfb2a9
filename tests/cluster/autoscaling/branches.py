"""Short series, one per branch of a scaling decision, with shortened windows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from inference_blueprints.serving.autoscaling.autoscaler import Autoscaler
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from tests.unit.serving.autoscaling.scaled_objects import TOKENS, manifest

#: Second from which on a value holds, and the value. NaN stands for an answer without a number, None for an
#: error.
Script = Sequence[tuple[float, float | None]]
#: All scripts end by then.
SECONDS = 60
_POLLING_SECONDS = 1
#: The first values hold so long before the scripts begin.
_SETTLING_SECONDS = 45


def value_at(script: Script, seconds: float) -> float | None:
    """Return the value of a script at a time."""
    return [value for begin, value in script if begin <= max(seconds, 0.0)][-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A series, and the numbers of workers that follow from it."""

    name: str
    """Name, also of the objects."""
    start: int
    """Number of workers at the beginning."""
    scripts: Mapping[str, Script]
    """A script per trigger."""
    numbers: Sequence[int]
    """The numbers of workers that must follow, without repetitions."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Changes of the ScaledObject."""
    trigger: Mapping[str, str] = field(default_factory=dict)
    """Changes of its triggers' metadata."""
    metric_type: str = "AverageValue"
    """Of its triggers."""
    schedule: int | None = None
    """Number of workers within the scheduled minute, if there is a schedule."""
    ready: bool = True
    """Whether its workers become ready."""

    def queries(self) -> Mapping[str, str]:
        """Return the expression of each trigger of Prometheus, by its name."""
        return {name: f"{self.name}/{name}" for name in self.scripts}

    def manifest(self, address: str, window: tuple[str, str]) -> dict[str, Any]:
        """Return the ScaledObject.

        address: Where Prometheus answers.
        window: Cron expressions in UTC of the start and the end of the scheduled minute.
        """
        triggers: list[Mapping[str, Any]] = [
            {
                **TOKENS,
                "name": name,
                "metricType": self.metric_type,
                "metadata": {
                    **TOKENS["metadata"],
                    "serverAddress": address,
                    "query": query,
                    **self.trigger,
                },
            }
            for name, query in self.queries().items()
        ]
        if self.schedule is not None:
            start, end = window
            metadata = {
                "timezone": "Etc/UTC",
                "start": start,
                "end": end,
                "desiredReplicas": str(self.schedule),
            }
            triggers.append({"type": "cron", "name": "schedule", "metadata": metadata})
        found = manifest(triggers=triggers, **self.rules)
        found["metadata"]["name"] = found["spec"]["scaleTargetRef"]["name"] = self.name
        found["spec"]["pollingInterval"] = _POLLING_SECONDS
        return found

    def simulated_numbers(self, window: tuple[str, str], begin: float, end: float) -> list[int]:
        """Return the numbers that the simulator chooses second by second, without repetitions.

        window: Cron expressions in UTC of the start and the end of the scheduled minute.
        begin, end: When the scripts begin, and the last decision, in seconds since 1970.
        """
        autoscaler = Autoscaler(ScaledObject.read(self.manifest("http://unused", window)))
        current, numbers = self.start, []
        for second in range(-_SETTLING_SECONDS, int(end - begin)):
            values = {name: value_at(script, second) for name, script in self.scripts.items()}
            ready = current if self.ready else 0
            current = autoscaler.decide(begin + second, current, ready, values).desired
            numbers.append(current)
        return changes(self.start, numbers)


def changes(start: int, numbers: Sequence[int]) -> list[int]:
    """Return the numbers after the start, without repetitions."""
    return [number for number, _ in groupby([start, *numbers])][1:]


def daily(seconds: float) -> str:
    """Return the cron expression of a time of day in UTC."""
    time_of_day = datetime.fromtimestamp(seconds, UTC)
    return f"{time_of_day.minute} {time_of_day.hour} * * *"


def _tokens(*script: tuple[float, float | None]) -> dict[str, Script]:
    return {"tokens": script}


def _fallback(behaviour: str, threshold: int = 3) -> dict[str, Any]:
    return {"fallback": {"failureThreshold": threshold, "replicas": 6, "behavior": behaviour}}


_WINDOW = {"stabilizationWindowSeconds": 15}
_TWO_IN_TEN_SECONDS = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 10}]}
_HALF_IN_TEN_SECONDS = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 10}]}
_SHARE = {"threshold": "0.5"}

BRANCHES = (
    Branch(name="up", start=2, scripts=_tokens((0, 200), (8, 690), (20, 9000)), numbers=[7, 12]),
    Branch(name="down", start=10, scripts=_tokens((0, 1000), (8, 551), (20, 0)), numbers=[6, 2]),
    Branch(
        name="tolerance",
        start=10,
        scripts=_tokens((0, 1000), (8, 1099), (16, 901), (24, 1101)),
        numbers=[12],
    ),
    Branch(
        name="down-window",
        start=10,
        scripts=_tokens((0, 1000), (8, 200), (13, 1000), (30, 200)),
        numbers=[2],
        rules={"scale_down": _WINDOW},
    ),
    Branch(
        name="up-window",
        start=2,
        scripts=_tokens((0, 200), (8, 900), (13, 200), (30, 600)),
        numbers=[6],
        rules={"scale_up": _WINDOW},
    ),
    Branch(
        name="up-policy",
        start=2,
        scripts=_tokens((0, 200), (4, 1200)),
        numbers=[4, 6, 8, 10, 12],
        rules={"scale_up": _TWO_IN_TEN_SECONDS},
    ),
    Branch(
        name="down-policy",
        start=12,
        scripts=_tokens((0, 1200), (4, 200)),
        numbers=[6, 3, 2],
        rules={"scale_down": _HALF_IN_TEN_SECONDS},
    ),
    Branch(name="missing", start=5, scripts=_tokens((0, 500), (8, None), (24, 800)), numbers=[8]),
    Branch(
        name="empty-is-zero",
        start=10,
        scripts=_tokens((0, 1000), (8, math.nan)),
        numbers=[2],
        trigger={"ignoreNullValues": "true"},
    ),
    Branch(
        name="empty-is-error", start=10, scripts=_tokens((0, 1000), (8, math.nan), (24, 500)), numbers=[5]
    ),
    Branch(
        name="one-missing",
        start=5,
        scripts={"tokens": ((0, 500), (8, 300), (24, 900)), "queue": ((0, 500), (4, None))},
        numbers=[9],
    ),
    Branch(
        name="fallback-higher",
        start=3,
        scripts=_tokens((0, 300), (8, None), (30, 400)),
        numbers=[6, 4],
        rules=_fallback("currentReplicasIfHigher"),
    ),
    Branch(
        name="fallback-keeps",
        start=9,
        scripts=_tokens((0, 900), (8, None), (30, 400)),
        numbers=[4],
        rules=_fallback("currentReplicasIfHigher"),
    ),
    Branch(
        name="fallback-static",
        start=9,
        scripts=_tokens((0, 900), (8, None), (30, 400)),
        numbers=[6, 4],
        rules=_fallback("static"),
    ),
    Branch(
        name="fallback-not-yet",
        start=9,
        scripts=_tokens((0, 900), (8, None), (24, 400)),
        numbers=[4],
        rules=_fallback("static", threshold=500),
    ),
    Branch(name="schedule", start=2, scripts=_tokens((0, 200)), numbers=[6, 2], schedule=6),
    Branch(name="too-few", start=1, scripts=_tokens((0, 200), (8, 700)), numbers=[2, 7]),
    Branch(name="too-many", start=15, scripts=_tokens((0, 1200), (8, 700)), numbers=[12, 7]),
    Branch(
        name="value",
        start=4,
        scripts=_tokens((0, 0.5), (8, 0.75)),
        numbers=[6],
        rules={"scale_up": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}},
        trigger=_SHARE,
        metric_type="Value",
    ),
    Branch(
        name="value-not-ready",
        start=8,
        scripts=_tokens((0, 0.5), (8, 0.9)),
        numbers=[2],
        trigger=_SHARE,
        metric_type="Value",
        ready=False,
    ),
)
