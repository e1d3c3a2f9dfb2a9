"""On a shared pool, real time takes what batch has and never from each other, on the real scheduler."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_catalog import node_facts
from inference_catalog.charts import charts_directory, stage_chart
from stacks.eks.capacity_stack import priority_classes
from tests.cluster.nodes import node
from tests.cluster.objects import KubernetesObject, rendered
from tests.cluster.state import has, in_namespace, pods, usable_nodes
from tests.templates.shared_platform import FIRST, LENT, NODES, POOL, SECOND, document


@pytest.fixture
def pool(kubectl: Kubectl) -> Iterator[None]:
    """The nodes of the pool, and the classes of its pods."""
    classes = priority_classes()
    names = [f"shared-{number}" for number in range(NODES)]
    labels, instance_type = {node_facts.POOL_LABEL: POOL}, catalog.instance_type("p5.48xlarge")
    kubectl.apply([*classes, *(node(name, instance_type, labels=labels, taints=[]) for name in names)])
    kubectl.wait_until(lambda: usable_nodes(kubectl) >= set(names), "nodes take pods")
    yield
    kubectl.run("delete", "nodes", *names, "--wait=false")
    kubectl.run("delete", "priorityclasses", *(each["metadata"]["name"] for each in classes))


@pytest.fixture
def workers(tmp_path: Path) -> dict[str, KubernetesObject]:
    """Pod templates of the workers by the name of their Deployment, as the chart renders them."""
    plan = build_plan(parse_blueprint(yaml.safe_dump(document()), "shared.yaml").blueprint)
    chart = stage_chart(charts_directory() / "direct-model", tmp_path)
    found = {}
    for model in plan.models:
        for deployment in model.deployments:
            values = deployment_values(deployment, shifted=True)
            release = {"Release": deployment.release, "Namespace": "inference", "Values": values}
            for each in rendered(release, chart):
                if each["kind"] == "Deployment":
                    found[each["metadata"]["name"]] = each["spec"]["template"]
    return found


def test_real_time_takes_what_batch_has_and_never_from_each_other(
    kubectl: Kubectl, namespace: str, pool: None, workers: dict[str, KubernetesObject]
) -> None:
    """Red without classes: a worker of four accelerators would wait for ever beside sixteen of batch."""

    def start(name: str, count: int) -> None:
        made: list[KubernetesObject] = []
        for number in range(count):
            pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(workers[name])}
            pod["metadata"]["name"] = f"{name}-{number}"
            del pod["spec"]["serviceAccountName"]  # the chart creates it in the namespace of models
            made.append(pod)
        kubectl.apply(in_namespace(namespace, made))

    def placed() -> dict[str, int]:
        found = [each["metadata"]["name"] for each in pods(kubectl, namespace) if has(each, "PodScheduled")]
        return {name: sum(each.startswith(name) for each in found) for name in (FIRST, SECOND, LENT)}

    start(LENT, 16)
    kubectl.wait_until(lambda: placed()[LENT] == 16, "batch has the pool")
    start(SECOND, 2)
    kubectl.wait_until(lambda: placed() == {FIRST: 0, SECOND: 2, LENT: 8}, "two workers of four have places")
    start(FIRST, 12)
    kubectl.wait_until(lambda: placed() == {FIRST: 8, SECOND: 2, LENT: 0}, "eight of one have places")
    waiting = [each for each in pods(kubectl, namespace) if has(each, "PodScheduled", "False")]
    assert {each["metadata"]["name"].rpartition("-")[0] for each in waiting} == {FIRST}
    assert placed()[SECOND] == 2, "real time ends no other real time"
