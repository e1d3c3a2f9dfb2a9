"""The dashboards: which recorded series and which metrics of AWS each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

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
def dashboard_rows(*, on_ecs: bool = False) -> tuple[DashboardRow, ...]:
    """Return every dashboard.

    on_ecs: Whether to leave out graphs that only a platform on EKS has.
    """
    rows = tuple(DashboardRow.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
    return tuple(_without_kubernetes(row) for row in rows) if on_ecs else rows


def _without_kubernetes(row: DashboardRow) -> DashboardRow:
    kept = {
        name: tuple(graph for graph in getattr(row, name) if not graph.kubernetes)
        for name in ("panels", "insights", "cloudwatch")
    }
    return row.model_copy(update=kept)
