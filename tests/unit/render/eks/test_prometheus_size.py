"""Prometheus requests the memory that its series need, and a cluster has no more of them than fit."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.cluster_targets import target_findings
from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.prometheus_size import MAX_SERIES, PrometheusSize, prometheus_size
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint

#: Measured with a real Prometheus 3 and the recorded answers of vLLM's workers, a third of whose values
#: change in each answer: memory of 8,000 workers, while all rules were evaluated and none was refused.
MEASURED_SERIES, MEASURED_MIB = 8000 * 248, 5_743


def fleet(workers: int) -> tuple[Blueprint, ServingPlan]:
    """Return a platform with so many workers of one GPU, and its plan, which is not built again."""
    blueprint = load_blueprint("elastic-g6e").blueprint
    plan = build_plan(blueprint)
    (model, *_), (part, *_) = blueprint.spec.models, plan.models
    planned = part.deployments[0]
    process = dataclasses.replace(planned.workers[0], replicas=workers, scaling=None)
    deployment = dataclasses.replace(planned, processes=(planned.entry_point, process))
    section = model.deployments[0].aggregated
    assert section is not None
    many = section.model_copy(update={"replicas": workers})
    described = model.model_copy(
        update={"deployments": [model.deployments[0].model_copy(update={"aggregated": many})]}
    )
    spec = blueprint.spec.model_copy(update={"models": [described]})
    return (
        blueprint.model_copy(update={"spec": spec}),
        dataclasses.replace(plan, models=(dataclasses.replace(part, deployments=(deployment,)),)),
    )


def server(size: PrometheusSize) -> dict[str, Any]:
    """Return the rendered section of the server."""
    values = chart_values(
        "prometheus",
        size=size.quantities,
        namespace="inference",
        gpu_namespace=None,
        keda_namespace=None,
        dropped="x",
        certificate=None,
        door=None,
        platform="try",
        rules={},
    )
    found: dict[str, Any] = json.loads(json.dumps(values["server"]))
    return found


def test_the_request_holds_what_was_measured_with_room_to_spare() -> None:
    """Red if it is less than a real Prometheus took."""
    assert PrometheusSize(MEASURED_SERIES).memory_mib >= MEASURED_MIB * 1.2


def test_a_small_platform_keeps_its_requests() -> None:
    assert server(prometheus_size(fleet(4)[1]))["resources"] == {
        "requests": {"cpu": "200m", "memory": "1Gi", "ephemeral-storage": "8Gi"},
        "limits": {"memory": "2Gi"},
    }


def test_eight_thousand_workers_get_memory_and_disk_for_their_series() -> None:
    """Red if the size is fixed: 2 GiB end both servers, and scaling, health and alarms are blind together."""
    size = prometheus_size(fleet(8000)[1])
    rendered = server(size)
    assert 8000 * 243 < size.series < MAX_SERIES
    assert rendered["resources"]["requests"]["memory"] == "8704Mi"
    assert rendered["resources"]["limits"]["memory"] == "17Gi"
    # Prometheus deletes blocks before Kubernetes ends the pod.
    assert rendered["emptyDir"]["sizeLimit"] == "17Gi"
    assert rendered["retentionSize"] == "12GB"


@pytest.mark.parametrize(("workers", "refused"), [(8000, False), (12_000, True)])
def test_more_series_than_a_cluster_has_room_for_are_refused(workers: int, *, refused: bool) -> None:
    found = list(target_findings(fleet(workers)[0]))
    assert bool(found) is refused
    for each in found:
        assert each.path == ("spec", "observability")
        assert f"got up to {workers:,} workers" in each.message
        assert "plan --fleet" in each.message
