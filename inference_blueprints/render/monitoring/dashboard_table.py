"""The dashboards: which recorded series and which metrics of AWS each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from inference_blueprints.render.monitoring.recordings import LATE_RECORDINGS, late_name
from inference_blueprints.spec.types import WHOLE_REQUEST, LatencyKind

#: Dashboard of the front door.
DOOR_DASHBOARD = "front-door"
#: Windows of the late share that a dashboard shows.
_LATE_WINDOWS = ("5m", "1h")
_FILE = Path(__file__).parent / "data/dashboards.yaml"


class Graph(BaseModel):
    """A graph of a dashboard."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    kubernetes: bool = False


class SeriesPanel(Graph):
    """A graph of recorded series."""

    series: tuple[str, ...]

    def queries(self, selector: str) -> tuple[str, ...]:
        """Return the PromQL of each series.

        selector: Label matchers, such as ``platform="quickstart"``.
        """
        return tuple(f"{name}{{{selector}}}" for name in self.series)


class InsightsQuery(Graph):
    """A graph of what Container Insights sends to CloudWatch itself."""

    query: str
    source: str


class ServiceMetrics(Graph):
    """A graph of metrics that a service of AWS reports."""

    namespace: str
    names: tuple[str, ...]
    dimensions: Mapping[str, str]
    statistic: str
    source: str


class DashboardRow(BaseModel):
    """A dashboard. ``dashboards.yaml`` explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    says: str
    panels: tuple[SeriesPanel, ...]
    insights: tuple[InsightsQuery, ...] = ()
    cloudwatch: tuple[ServiceMetrics, ...] = ()


@cache
def dashboard_rows(
    *, on_ecs: bool = False, late: frozenset[tuple[LatencyKind, float]] = frozenset(), door: bool = False
) -> tuple[DashboardRow, ...]:
    """Return every dashboard.

    on_ecs: Whether to leave out graphs that only a platform on EKS has.
    late: Latencies and percentiles of the platform's objectives, as `late_latencies` returns them.
    door: Whether the platform has a front door.
    """
    rows = tuple(DashboardRow.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
    rows = tuple(row for row in rows if door or row.name != DOOR_DASHBOARD)
    rows = tuple(_with_late(row, late) for row in rows)
    return tuple(_without_kubernetes(row) for row in rows) if on_ecs else rows


def _with_late(row: DashboardRow, late: frozenset[tuple[LatencyKind, float]]) -> DashboardRow:
    """Return a dashboard with the late share of each latency and percentile, beside that of the 90th."""
    panels = []
    for panel in row.panels:
        shown = dict.fromkeys(panel.series)
        kinds = [kind for kind, name in LATE_RECORDINGS.items() if f"{name}_{_LATE_WINDOWS[0]}" in shown]
        for kind, percentile in sorted(late):
            if kind in kinds:
                shown |= dict.fromkeys(_late_series(kind, percentile))
        panels.append(panel.model_copy(update={"series": tuple(shown)}))
    whole = [_late_series(kind, percentile) for kind, percentile in sorted(late) if kind == WHOLE_REQUEST]
    if row.name == "model" and whole:
        panels.append(SeriesPanel(title="Share of late requests", series=tuple(chain(*whole))))
    return row.model_copy(update={"panels": tuple(panels)})


def _late_series(kind: LatencyKind, percentile: float) -> tuple[str, ...]:
    name = late_name(LATE_RECORDINGS[kind], percentile)
    return tuple(f"{name}_{window}" for window in _LATE_WINDOWS)


def _without_kubernetes(row: DashboardRow) -> DashboardRow:
    kept = {
        name: tuple(graph for graph in getattr(row, name) if not graph.kubernetes)
        for name in ("panels", "insights", "cloudwatch")
    }
    return row.model_copy(update=kept)
