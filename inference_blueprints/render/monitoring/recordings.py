"""The series that Prometheus records: data with their meaning, unit and source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from inference_blueprints.spec.types import LatencyKind

Scope = Literal["release", "role", "pool", "platform"]

_FILE = Path(__file__).parent / "data/recordings.yaml"
_NINETIETH = 90.0
#: Labels of a recorded series, by scope.
SCOPE_LABELS: Mapping[Scope, tuple[str, ...]] = {
    "release": ("platform", "model", "release"),
    "role": ("platform", "model", "release", "role", "pool"),
    "pool": ("platform", "pool"),
    "platform": ("platform",),
}


class Recording(BaseModel):
    """A row of ``recordings.yaml``, which explains its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern="^[a-z_]+$")]
    """Name of the recorded series. A window or a percentile is appended to it."""
    scope: Scope
    unit: str
    says: str
    promql: Mapping[str, str]
    source: str
    windows: tuple[str, ...] = ()
    percentiles: tuple[int, ...] = ()
    objective: LatencyKind | None = None
    """The latency whose objectives it needs. A deployment without one has no such series."""
    elastic: bool = False
    """Whether only a platform with elastic workers has it."""
    door: bool = False
    """Whether only a platform with a front door has it."""
    by: tuple[str, ...] = ()
    """Labels of the result besides those of the scope."""

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the recorded series."""
        ends = [f"_{window}" for window in self.windows] or [f"_p{each}" for each in self.percentiles]
        return tuple(f"{self.name}{end}" for end in ends or [""])

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the recorded series."""
        return (*SCOPE_LABELS[self.scope], *self.by)


#: Recording of the share of what is late, by latency.
LATE_RECORDINGS: Mapping[LatencyKind, str] = MappingProxyType(
    {
        "timeToFirstTokenMs": "serving_first_token_late_ratio",
        "timePerOutputTokenMs": "serving_output_token_late_ratio",
        "requestMs": "serving_request_late_ratio",
    }
)


def late_name(name: str, percentile: float, separator: str = "_") -> str:
    """Return the name of what is late at a percentile: that of the 90th has no suffix."""
    return name if percentile == _NINETIETH else f"{name}{separator}p{percentile:g}"


@cache
def recordings() -> tuple[Recording, ...]:
    """Return every row, in the order in which rules may use each other."""
    return tuple(Recording.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
