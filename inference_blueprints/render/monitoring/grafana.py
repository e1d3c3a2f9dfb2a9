"""Dashboards as Grafana's JSON, for a Grafana that reads the cluster's Prometheus or CloudWatch's PromQL.

The keys are those of the dashboard model of Grafana 10.1, see the package ``grafana-foundation-sdk``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from inference_blueprints.render.monitoring.dashboard_table import DashboardRow
from inference_blueprints.render.monitoring.recordings import Recording, recordings

_WIDTH: Final = 12
_HEIGHT: Final = 8
_SCHEMA_VERSION: Final = 36
#: Grafana's names of units. Others are shown as text.
_UNITS: Final[Mapping[str, str]] = {"ratio": "percentunit", "seconds": "s", "requests per second": "reqps"}
_DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def grafana_dashboard(row: DashboardRow, platform: str) -> dict[str, Any]:
    """Return a dashboard as Grafana's JSON. Its data source is a variable, for import anywhere.

    Parameters
    ----------
    row
        The dashboard.
    platform
        `metadata.name`.
    """
    variable = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": f"{platform}: {row.name}",
        "uid": f"{platform}-{row.name}"[:40],
        "description": row.says,
        "schemaVersion": _SCHEMA_VERSION,
        "editable": False,
        "tags": ["inference-blueprints", platform],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [variable]},
        "panels": list(_panels(row, platform)),
    }


def _panels(row: DashboardRow, platform: str) -> Iterator[dict[str, Any]]:
    for place, panel in enumerate(row.panels):
        shown = [_recording(name) for name in panel.series]
        unit = shown[0].unit
        yield {
            "id": place + 1,
            "type": "timeseries",
            "title": panel.title,
            "description": " ".join(dict.fromkeys(each.says for each in shown)),
            "datasource": dict(_DATA_SOURCE),
            "gridPos": {
                "x": _WIDTH * (place % 2),
                "y": _HEIGHT * (place // 2),
                "w": _WIDTH,
                "h": _HEIGHT,
            },
            "fieldConfig": {
                "defaults": {"unit": _UNITS.get(unit, f"suffix: {unit}"), "min": 0},
                "overrides": [],
            },
            "targets": [
                {
                    "refId": chr(ord("A") + number),
                    "expr": query,
                    "legendFormat": _legend(recording, name),
                    "datasource": dict(_DATA_SOURCE),
                }
                for number, (recording, name, query) in enumerate(
                    zip(shown, panel.series, panel.queries(f'platform="{platform}"'), strict=True)
                )
            ],
        }


def _legend(recording: Recording, series: str) -> str:
    labels = " ".join(f"{{{{{label}}}}}" for label in recording.labels if label != "platform")
    end = series.removeprefix(recording.name).removeprefix("_")
    return " ".join(part for part in (end, labels) if part) or series


def _recording(series: str) -> Recording:
    return next(each for each in recordings() if series in each.series)
