"""The dashboards: which recorded series and which metrics of AWS each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

_FILE = Path(__file__).parent / "data/dashboards.yaml"


class SeriesPanel(BaseModel):
    """A graph of recorded series."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    series: tuple[str, ...]

    def queries(self, selector: str) -> tuple[str, ...]:
        """Return the PromQL of each series.

        Parameters
        ----------
        selector
            Label matchers, such as ``platform="quickstart"``.
        """
        return tuple(f"{name}{{{selector}}}" for name in self.series)


class InsightsQuery(BaseModel):
    """A graph of what Container Insights sends to CloudWatch itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    query: str
    source: str


class ServiceMetrics(BaseModel):
    """A graph of metrics that a service of AWS reports."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
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
def dashboard_rows() -> tuple[DashboardRow, ...]:
    """Return every dashboard."""
    return tuple(DashboardRow.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
