"""A graph of PromQL on a CloudWatch dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import aws_cloudwatch as cloudwatch

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

    Parameters
    ----------
    title
        Its title.
    queries
        PromQL.
    region
        Region of the metrics.
    width, height
        In units of the dashboard's grid, which has 24 columns.
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
