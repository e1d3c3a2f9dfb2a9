"""Dashboards show only recorded series."""

from __future__ import annotations

from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.recordings import recordings

#: Metrics of services, by namespace, with the dimension that AWS documents for them.
DOCUMENTED = {
    "AWS/EKS": ({"scheduler_pending_pods_UNSCHEDULABLE", "apiserver_request_total_5XX"}, {"ClusterName"}),
}


def test_every_panel_shows_recorded_series_of_one_unit() -> None:
    units = {series: each.unit for each in recordings() for series in each.series}
    for row in dashboard_rows(door=True):
        for panel in row.panels:
            assert len({units[name] for name in panel.series}) == 1, panel.title


def test_every_recorded_series_of_the_platform_is_shown_or_used_by_another() -> None:
    shown = {name for row in dashboard_rows(door=True) for panel in row.panels for name in panel.series}
    hidden = {each.name for each in recordings() if not shown & set(each.series)}
    # Whole requests are shown where a model has an objective for them. The others limit alarms, say how full
    # a queue is, price nodes, or are only asked for by alarms.
    assert hidden == {
        "serving_requests",
        "serving_request_late_ratio",
        "serving_batch_size",
        "serving_workers_up",
        "serving_workers_late",
        "pool_node_usd_per_hour",
        "platform_scaler_programs",
    }


def test_metrics_of_services_have_documented_names_and_dimensions() -> None:
    for row in dashboard_rows(door=True):
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
