"""The series that the shift reads are recorded on ECS, with the labels by which it asks."""

from __future__ import annotations

import re

import boto3
import pytest
import yaml
from capacity_shift.cell_reader import CellReader, DemandReader

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.serving.plan import build_plan
from inference_contracts.task_tags import LABEL_TAGS
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql, MetricSeries
from operations.operations_errors import MetricsError
from tests.runtime.capacity_shift.ecs_platform import ecs_configuration, new_ecs_platform
from tests.runtime.capacity_shift.shift_platform import NOW, PLATFORM
from tests.templates.test_ecs_shift_stack import document


class Asked(CloudWatchPromql):
    """CloudWatch's PromQL, which keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(
            "http://127.0.0.1:1", lambda _method, _address, headers, _body: headers, failure=MetricsError
        )
        self.times: dict[str, tuple[float, ...]] = {}

    def instant(self, query: str, at: float) -> tuple[MetricSeries, ...]:
        self.times[query] = (at,)
        return ()

    def range(self, query: str, start: float, end: float, step_seconds: float) -> tuple[MetricSeries, ...]:
        self.times[query] = (start, end, step_seconds)
        return ()


def asked() -> dict[str, set[str]]:
    """Return the labels of each series that a run asks for: those of its matchers and of its groups."""
    metrics, configuration = Asked(), ecs_configuration()
    platform = new_ecs_platform(configuration)
    DemandReader(PLATFORM, configuration.workers, metrics, boto3.client("cloudwatch")).histories(NOW)
    CellReader(PLATFORM, configuration, platform.numbers(), metrics, platform.batch_table).read(NOW)
    found = {}
    for query in metrics.times:
        parts = re.fullmatch(r"sum by \(([\w, ]+)\) \((\w+)\{(\w+)=\"\w+\"\}\)", query)
        assert parts is not None, query
        found[parts[2]] = {*parts[1].split(", "), parts[3]}
    return found


@pytest.mark.usefixtures("aws_in_process")
def test_each_series_is_recorded_by_the_labels_that_a_run_asks_for() -> None:
    loaded = parse_blueprint(yaml.safe_dump(document()), "shift.yaml").blueprint
    plan, spec = build_plan(loaded), loaded.spec
    rules = {rule.record: rule for rule in platform_rules(PLATFORM, plan, spec)}
    series = asked()
    assert series.keys() == {"serving_requests_in_flight", "serving_workers_up"}
    for name, labels in series.items():
        groups = re.findall(r"by \(([\w, ]+)\)", rules[name].expression)
        assert groups, name
        for group in groups:
            assert labels - {*group.split(", "), *rules[name].labels} == set(), name
    # Prometheus takes the labels of a task from the tags of its service.
    for model in plan.models:
        for deployment in EcsTarget(loaded, plan).render(model):
            for service in deployment.services:
                assert {LABEL_TAGS[label] for labels in series.values() for label in labels} <= (
                    service.tags.keys()
                )
