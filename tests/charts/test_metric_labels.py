"""Pods that are scraped have the labels of their metrics, and each names one of its own ports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan
from inference_contracts.metric_labels import METRICS_PORT_LABEL, POD_LABEL_PREFIX, POD_LABELS
from tests.charts import dynamo, llm_d
from tests.charts.llm_d import BUCKET
from tests.charts.renderings import Manifest, Render

PLANS = {**{name: dynamo.DEPLOYMENTS[name] for name in dynamo.UNLIKE}, **llm_d.DEPLOYMENTS}
WANTED = {*(f"{POD_LABEL_PREFIX}{name}" for name in POD_LABELS), METRICS_PORT_LABEL}


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yield the template of each pod that serves; a further node of a worker has no API and no metrics."""
    for manifest in manifests:
        spec = manifest.get("spec", {})
        match manifest["kind"]:
            case "DynamoGraphDeployment":
                yield from (component["podTemplate"] for component in spec["components"])
            case "Deployment":
                yield spec["template"]
            case "LeaderWorkerSet":
                yield spec["leaderWorkerTemplate"]["leaderTemplate"]


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> DeploymentPlan:
    """Each deployment in turn."""
    return PLANS[request.param]


def test_each_pod_has_every_label_and_a_port_of_its_own(plan: DeploymentPlan, render: Render) -> None:
    values = deployment_values(plan, weights_bucket=BUCKET, observed_platform="try")
    found = list(pods(render(values, plan.release, plan.chart)))
    roles = [process.role for process in plan.processes]
    assert sorted(each["metadata"]["labels"][f"{POD_LABEL_PREFIX}role"] for each in found) == sorted(roles)
    for pod in found:
        labels = pod["metadata"]["labels"]
        assert labels.keys() >= WANTED
        assert labels[f"{POD_LABEL_PREFIX}platform"] == "try"
        assert labels[f"{POD_LABEL_PREFIX}release"] == plan.release
        ports = [
            str(port["containerPort"])
            for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
            for port in container.get("ports", ())
        ]
        assert ports.count(labels[METRICS_PORT_LABEL]) == 1


def test_without_observability_pods_have_none_of_them(plan: DeploymentPlan, render: Render) -> None:
    values = deployment_values(plan, weights_bucket=BUCKET)
    for pod in pods(render(values, plan.release, plan.chart)):
        assert METRICS_PORT_LABEL not in pod["metadata"]["labels"]
