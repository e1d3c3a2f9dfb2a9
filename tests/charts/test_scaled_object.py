"""The ScaledObjects that charts render, as the simulator of elastic workers reads them."""

from __future__ import annotations

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.autoscaling.scaled_object import CronTrigger, MetricTrigger, ScaledObject
from inference_blueprints.serving.types import DeploymentPlan
from tests.charts.dynamo import shipped_deployments
from tests.charts.llm_d import BUCKET
from tests.charts.renderings import Render

_ELASTIC = [
    deployment
    for deployment in shipped_deployments()
    if any(process.scaling for process in deployment.processes)
]


@pytest.mark.parametrize("elastic", _ELASTIC, ids=lambda deployment: deployment.release)
def test_the_simulator_reads_what_the_plan_says(elastic: DeploymentPlan, render: Render) -> None:
    objects = render(deployment_values(elastic, weights_bucket=BUCKET), elastic.release, elastic.chart)
    found = [ScaledObject.read(each) for each in objects if each["kind"] == "ScaledObject"]
    planned = [process.scaling for process in elastic.processes if process.scaling]
    assert planned
    assert [(each.minimum, each.maximum, each.polling_seconds) for each in found] == [
        (each.least, each.most, each.polling_seconds) for each in planned
    ]
    for scaled, scaling in zip(found, planned, strict=True):
        metrics = [each for each in scaled.triggers if isinstance(each, MetricTrigger)]
        floors = [each.replicas for each in scaled.triggers if isinstance(each, CronTrigger)]
        assert [(each.name, each.query, each.target, each.metric_type) for each in metrics] == [
            (each.name, each.query, each.target, each.metric_type) for each in scaling.triggers
        ]
        assert not any(each.empty_is_zero for each in metrics)
        assert floors == [each.replicas for each in scaling.floors]
        assert scaled.down.stabilisation_seconds == scaling.down_stabilization_seconds
        assert scaled.fallback is not None
        assert scaled.fallback.replicas == scaling.fallback_replicas
