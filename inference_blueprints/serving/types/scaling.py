"""How the number of an elastic role's workers follows its load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from inference_blueprints.serving.types.constraints import NonEmpty, NotNegative, Positive

#: How KEDA compares a trigger's number with its target: ``AverageValue`` divides it by the number of workers,
#: ``Value`` takes it as it is.
MetricType = Literal["AverageValue", "Value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTrigger:
    """A measured load by which a role scales."""

    name: Annotated[str, Field(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
    """Name within the role."""
    query: NonEmpty
    """PromQL expression with one number for the whole role."""
    target: Annotated[float, Field(gt=0)]
    """Value at which the number of workers is right: per worker with ``AverageValue``, of the role with
    ``Value``, in the unit of the query."""
    metric_type: MetricType
    """How the number is compared with the target."""
    why: NonEmpty
    """A sentence that explains the target, with the figures behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFloor:
    """A smallest number of workers during a part of the week."""

    start: NonEmpty
    end: NonEmpty
    """`start`, `end`: Cron expressions of five fields, as KEDA reads them."""
    time_zone: NonEmpty
    """Time zone of both, such as ``Europe/Berlin``."""
    replicas: Positive
    """Smallest number of workers from `start` to `end`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The range of an elastic role, and the rules by which KEDA moves within it."""

    least: Positive
    most: Positive
    """`least`, `most`: Smallest and largest number of workers."""
    triggers: Annotated[tuple[ScaleTrigger, ...], Field(min_length=1)]
    """Measured loads. The one that needs most workers decides."""
    floors: tuple[ReplicaFloor, ...] = ()
    """Smallest numbers of workers by schedule."""
    polling_seconds: Positive = 15
    """Time between two readings of the triggers."""
    up_stabilization_seconds: NotNegative = 0
    """Time during which a need for more workers must last."""
    down_stabilization_seconds: NotNegative = 300
    """Time during which a need for fewer workers must last."""
    down_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """Largest share of the workers that go within `down_period_seconds`, in percent."""
    down_period_seconds: Positive = 60
    """Period of that share, in seconds."""
    fallback_after_failures: Positive = 3
    """Failed readings of a trigger in a row after which `fallback_replicas` holds."""

    @property
    def fallback_replicas(self) -> int:
        """Number of workers without readings, if there are not more already: the highest floor."""
        return max((floor.replicas for floor in self.floors), default=self.least)
