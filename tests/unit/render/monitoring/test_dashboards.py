"""Dashboards show only recorded series, and their JSON is what Grafana reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.prometheus import Dataquery

from inference_blueprints.render.monitoring.dashboard_table import DashboardRow, dashboard_rows
from inference_blueprints.render.monitoring.grafana import grafana_dashboard
from inference_blueprints.render.monitoring.recordings import recordings

#: Metrics of services, by namespace, with the dimension that AWS documents for them.
DOCUMENTED = {
    "AWS/EKS": ({"scheduler_pending_pods_UNSCHEDULABLE", "apiserver_request_total_5XX"}, {"ClusterName"}),
}


def _written(value: object) -> Any:
    return json.loads(JSONEncoder(sort_keys=True).encode(value))


def _contains(whole: Any, part: Any) -> bool:
    """Return whether every key and value of a part is in the whole, in lists by position."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(_contains(whole.get(key), part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(_contains, whole, part))
    return bool(whole == part)


def test_every_panel_shows_recorded_series_of_one_unit() -> None:
    units = {series: each.unit for each in recordings() for series in each.series}
    for row in dashboard_rows():
        for panel in row.panels:
            assert len({units[name] for name in panel.series}) == 1, panel.title


def test_every_recorded_series_of_the_platform_is_shown_or_used_by_another() -> None:
    shown = {name for row in dashboard_rows() for panel in row.panels for name in panel.series}
    hidden = {each.name for each in recordings() if not shown & set(each.series)}
    # They limit alarms, say how full a queue is, price nodes, or are only asked for by alarms.
    assert hidden == {
        "serving_requests",
        "serving_batch_size",
        "serving_workers_up",
        "serving_workers_late",
        "pool_node_usd_per_hour",
        "platform_scaler_programs",
    }


@pytest.mark.parametrize("row", dashboard_rows(), ids=lambda row: row.name)
def test_grafana_reads_every_key(row: DashboardRow) -> None:
    ours = grafana_dashboard(row, "quickstart")
    # The model drops keys that Grafana does not know, so a key that is lost is a wrong one.
    assert _contains(_written(Dashboard.from_json(json.loads(json.dumps(ours)))), ours)
    for panel in ours["panels"]:
        for target in panel["targets"]:
            assert _contains(_written(Dataquery.from_json(dict(target))), target)


def test_metrics_of_services_have_documented_names_and_dimensions() -> None:
    for row in dashboard_rows():
        for graph in row.cloudwatch:
            names, dimensions = DOCUMENTED[graph.namespace]
            assert set(graph.names) <= names
            assert set(graph.dimensions) == dimensions
            assert graph.source.startswith("https://docs.aws.amazon.com/")


def test_a_platform_on_ecs_has_every_graph_but_those_of_kubernetes() -> None:
    def titles(*, on_ecs: bool) -> set[str]:
        rows = dashboard_rows(on_ecs=on_ecs)
        return {graph.title for row in rows for graph in (*row.panels, *row.insights, *row.cloudwatch)}

    assert titles(on_ecs=False) - titles(on_ecs=True) == {
        "Control plane",
        "Failed readings by KEDA per minute",
        "Packets that EFA dropped per second",
    }
