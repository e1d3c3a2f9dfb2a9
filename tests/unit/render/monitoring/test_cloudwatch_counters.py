"""Queries that run in CloudWatch treat each metric as it is sent: increments have no `rate`."""

from __future__ import annotations

import re

import pytest

from inference_blueprints.render.monitoring.alarm_table import alarm_rows
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.recordings import recordings

#: Metrics that arrive as totals since a start. ``alarms.yaml`` names the sources. All others that CloudWatch
#: is asked for are recorded series, whose type is unknown to Prometheus, so the agent sends them as gauges.
CUMULATIVE = {"efa_rx_dropped"}

#: "The `rate`, `increase`, `irate`, and `resets` functions assume cumulative data.":
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-Querying.html
_OF_TOTALS = re.compile(r"\b(?:rate|increase|irate|resets)\(\s*([^()]*?)\s*\)")
_METRIC = re.compile(r"^(?:\{\"([\w.]+)\"|([\w:]+)\{)")

QUERIES = {
    **{row.name: row.query for row in alarm_rows()},
    **{graph.title: graph.query for row in dashboard_rows() for graph in row.insights},
    **{
        f"{panel.title}: {query}": query
        for row in dashboard_rows()
        for panel in row.panels
        for query in panel.queries("$labels")
    },
}


def _metric(selector: str) -> str:
    found = _METRIC.match(selector)
    assert found, f"no metric begins {selector!r}"
    return found[1] or found[2]


def _read_as_totals(query: str) -> list[str]:
    """Return the metric of each call of a function that assumes totals."""
    return [_metric(argument) for argument in _OF_TOTALS.findall(query)]


@pytest.mark.parametrize("name", QUERIES)
def test_only_totals_are_read_as_totals(name: str) -> None:
    assert set(_read_as_totals(QUERIES[name])) <= CUMULATIVE


@pytest.mark.parametrize("name", QUERIES)
def test_totals_are_read_as_nothing_else(name: str) -> None:
    asked = [metric for metric in re.findall(r"[\w:.]+", QUERIES[name]) if metric in CUMULATIVE]
    assert _read_as_totals(QUERIES[name]) == asked


def test_queries_in_cloudwatch_ask_for_recorded_series_or_for_totals_with_a_source() -> None:
    known = {series for each in recordings() for series in each.series} | CUMULATIVE
    for name, query in QUERIES.items():
        assert any(metric in known for metric in re.findall(r"[\w:.]+", query)), name


@pytest.mark.parametrize(
    ("query", "metrics"),
    [
        ('rate({"efa_rx_dropped",a="b"}[5m]) > 10', ["efa_rx_dropped"]),
        ('sum by (x) (increase(serving_requests_5m{a="b"}[1h]))', ["serving_requests_5m"]),
        ('sum_over_time({"efa_rx_dropped"}[5m]) / 300', []),
    ],
)
def test_functions_of_totals_are_found(query: str, metrics: list[str]) -> None:
    assert _read_as_totals(query) == metrics
