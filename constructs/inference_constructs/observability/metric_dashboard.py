"""A CloudWatch dashboard of alarms, of PromQL, and of metrics in documented namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

_STEP_SECONDS: Final = 60
#: The options with which AWS' own dashboards draw lines, see `PromqlWidget`.
_LINES: Final[Mapping[str, Any]] = {
    "legend": {"position": "bottom", "show": True},
    "xAxis": {"type": "datetime"},
    "yAxis": [{"type": "linear"}],
    "style": {
        "lineOptions": {"filled": False, "stacked": False, "width": 2, "pattern": "solid", "spline": False},
        "numberOptions": {"sparkline": True},
        "pieOptions": {"innerSize": "50%"},
        "barOptions": {},
        "gaugeOptions": {},
    },
}


class PromqlWidget(cloudwatch.ConcreteWidget):
    """Lines of PromQL queries, as a widget of the type ``chart``. aws-cdk-lib 2.275.0 has no class for it.

    CloudWatch User Guide, "Dashboard Body Structure and Syntax", "Properties of a Chart Widget Object". The
    properties are those of the dashboards of AWS' guidance aws-solutions-library-samples/
    guidance-for-claude-code-with-amazon-bedrock v2.5.2, deployment/infrastructure/claude-code-dashboard.yaml;
    its issue 759 has CloudWatch's answer to the same queries in a widget of the type ``metric``.

    queries: PromQL.
    region: Region of the metrics.
    width, height: In units of the dashboard's grid, which has 24 columns.
    """

    def __init__(self, *, title: str, queries: Sequence[str], region: str, width: int, height: int) -> None:
        super().__init__(width, height)
        self._title = title
        self._queries = queries
        self._region = region

    def to_json(self) -> list[Any]:
        """Return the widget."""
        queries = [
            {
                "id": f"q{number}",
                "type": "cloudwatch-metrics",
                "language": "PromQL",
                "query": query,
                "step": _STEP_SECONDS,
            }
            for number, query in enumerate(self._queries)
        ]
        return [
            {
                "type": "chart",
                "width": self.width,
                "height": self.height,
                "x": self._x,
                "y": self._y,
                "properties": {
                    "title": self._title,
                    "view": "line",
                    "region": self._region,
                    "data": {"queries": queries},
                    "plotOptions": _LINES,
                },
            }
        ]


_WIDTH, _HEIGHT = 12, 6
_TEXT_HEIGHT = 2
_ALL = 2 * _WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMetric:
    """A CloudWatch metric."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    """`namespace`, `name`, `dimensions`: What identifies it."""
    statistic: str
    """Such as ``Average``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPanel:
    """A graph."""

    title: str
    """Its title, with the unit."""
    metrics: Sequence[NamedMetric]
    """Its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPanel:
    """A graph of PromQL."""

    title: str
    """Its title, with the unit."""
    queries: Sequence[str]
    """Its queries."""


class MetricDashboard(Construct):
    """A dashboard with the state of alarms, a text, and graphs.

    Parameters
    ----------
    text
        Markdown at the top.
    alarms
        Alarms whose state it shows.
    queries, metrics
        Its graphs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        text: str,
        alarms: Sequence[cloudwatch.IAlarm],
        queries: Sequence[QueryPanel] = (),
        metrics: Sequence[MetricPanel] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        graphs: list[cloudwatch.IWidget] = [
            *(self._query_graph(panel) for panel in queries),
            *(self._metric_graph(panel) for panel in metrics),
        ]
        rows: list[list[cloudwatch.IWidget]] = [
            [cloudwatch.TextWidget(markdown=text, width=_ALL, height=_TEXT_HEIGHT)],
            *(graphs[start : start + 2] for start in range(0, len(graphs), 2)),
        ]
        if alarms:
            state = cloudwatch.AlarmStatusWidget(
                alarms=alarms, title="Alarms", width=_ALL, height=_HEIGHT // 2
            )
            rows.insert(0, [state])
        cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.hours(6), widgets=rows)

    def _query_graph(self, panel: QueryPanel) -> cloudwatch.IWidget:
        region = cdk.Stack.of(self).region
        return PromqlWidget(
            title=panel.title, queries=panel.queries, region=region, width=_WIDTH, height=_HEIGHT
        )

    def _metric_graph(self, panel: MetricPanel) -> cloudwatch.IWidget:
        metrics = [
            cloudwatch.Metric(
                namespace=metric.namespace,
                metric_name=metric.name,
                dimensions_map=dict(metric.dimensions),
                statistic=metric.statistic,
                period=cdk.Duration.minutes(1),
            )
            for metric in panel.metrics
        ]
        return cloudwatch.GraphWidget(title=panel.title, left=metrics, width=_WIDTH, height=_HEIGHT)
