"""The series that Prometheus records: data with their meaning, unit and source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

Scope = Literal["release", "role", "pool", "platform"]

_FILE = Path(__file__).parent / "data/recordings.yaml"
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
    objective: str | None = None
    """The attribute of `Objectives` that it needs. A deployment without it has no such series."""
    elastic: bool = False
    """Whether only a platform with elastic workers has it."""
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


@cache
def recordings() -> tuple[Recording, ...]:
    """Return every row, in the order in which rules may use each other."""
    return tuple(Recording.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
