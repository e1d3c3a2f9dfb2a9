"""A benchmark's Job on a real API server: what it takes, where the pod goes, and what is left behind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import certifi
import pytest

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.measure.benchmarking.load_generators import Access, LoadTest, Question
from inference_blueprints.operate.benchmark_job import job_objects
from inference_blueprints.operate.benchmark_job.cluster_job import (
    ClusterLoadGenerator,
    models_namespace,
    objects,
)
from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_contracts.errors import UserError
from tests.cluster.nodes import node
from tests.cluster.state import ready_names
from tests.unit.measure.benchmarking.recorded import ANSWERED, said

LOAD_TEST = LoadTest("http://qwen3-8b.internal", "qwen3-8b", ("word",), (Question(0.0, ((3, 1),), 4),))
ACCESS = Access("sk-a-secret", Path(certifi.where()))
SYSTEM, POOLED = "benchmark-system", "benchmark-pooled"
KINDS = ("jobs", "configmaps", "secrets", "pods")
OURS = "app.kubernetes.io/name=benchmark"


@pytest.fixture(scope="module")
def deployment() -> DeploymentPlan:
    return build_plan(load_blueprint("quickstart-g6e").blueprint).models[0].deployments[0]


@pytest.fixture
def nodes(kubectl: Kubectl) -> Iterator[None]:
    """A system node, and one of a pool that has more room."""
    labels = {"inference-blueprints/pool": "l40s"}
    kubectl.apply(
        [
            node(SYSTEM, catalog.instance_type("m7i.xlarge"), labels={}, taints=[]),
            node(POOLED, catalog.instance_type("g6e.12xlarge"), labels=labels, taints=[]),
        ]
    )
    kubectl.wait_until(lambda: ready_names(kubectl, "nodes") >= {SYSTEM, POOLED}, "nodes are ready")
    yield
    kubectl.run("delete", "nodes", SYSTEM, POOLED, "--wait=false")


class Watched:
    """The cluster; nothing runs in the pods of nodes without kubelets, so the log is a recorded one."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self._kubectl = kubectl
        self._namespace = namespace
        self.there: list[str] = []
        self.nodes: list[str] = []

    def run(self, *arguments: str) -> str:
        if arguments[0] != "logs":
            return self._kubectl.run(*arguments)
        self.there = left(self._kubectl, self._namespace)
        own = self._kubectl.get("pods", "--namespace", self._namespace, "--selector", OURS)
        self.nodes = [pod["spec"]["nodeName"] for pod in own]
        return said(ANSWERED)

    def get(self, *arguments: str) -> list[dict[str, Any]]:
        return self._kubectl.get(*arguments)

    def apply(self, made: Sequence[dict[str, Any]]) -> None:
        self._kubectl.apply(made)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return self._kubectl.start(*arguments)


def load_generator(
    cluster: Kubectl | Watched, deployment: DeploymentPlan, say: Callable[[str], None]
) -> ClusterLoadGenerator:
    return ClusterLoadGenerator(lambda: cluster, deployment, ACCESS, job_objects.IMAGE, say, poll_seconds=0.1)


def left(kubectl: Kubectl, namespace: str) -> list[str]:
    """What of a benchmark is still there."""
    found = [
        each for kind in KINDS for each in kubectl.get(kind, "--namespace", namespace, "--selector", OURS)
    ]
    return [f"{each['kind']} {each['metadata']['name']}" for each in found]


def test_what_would_be_made_is_taken_and_its_pod_meets_the_restricted_standard(
    kubectl: Kubectl, namespace: str, deployment: DeploymentPlan
) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    kubectl.run("label", "namespace", namespace, label)
    made = objects(LOAD_TEST, namespace, job_objects.IMAGE, ACCESS)
    pod = {**made[0]["spec"]["template"], "apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] = {**pod["metadata"], "name": "one", "namespace": namespace}
    kubectl.check([*made, pod])


def test_a_job_ends_on_a_system_node_and_leaves_its_records_and_nothing_else(
    kubectl: Kubectl, deployment: DeploymentPlan, nodes: None
) -> None:
    namespace = models_namespace(deployment)
    cluster = Watched(kubectl, namespace)
    (outcome,) = load_generators.outcomes(load_generator(cluster, deployment, print).ask(LOAD_TEST))
    assert outcome.failure is None
    assert cluster.nodes == [SYSTEM]
    assert [each.split()[0] for each in cluster.there] == ["Job", "ConfigMap", "Secret", "Pod"]
    kubectl.wait_until(lambda: not left(kubectl, namespace), "all of it is gone")


def test_ctrl_c_takes_the_job_and_all_that_it_owns_away(kubectl: Kubectl, deployment: DeploymentPlan) -> None:
    """Without a node its pod waits, which is said."""
    namespace, lines = models_namespace(deployment), list[str]()

    def interrupt(line: str) -> None:
        lines.append(line)
        if "has no node" in line:
            assert {each.split()[0] for each in left(kubectl, namespace)} >= {"Job", "ConfigMap", "Secret"}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_generator(kubectl, deployment, interrupt).ask(LOAD_TEST)
    kubectl.wait_until(lambda: not left(kubectl, namespace), "all of it is gone")


def test_who_may_make_no_jobs_is_told_so(kubectl: Kubectl, deployment: DeploymentPlan) -> None:
    class Onlooker(Watched):
        def apply(self, made: Sequence[dict[str, Any]]) -> None:
            document = {"apiVersion": "v1", "kind": "List", "items": list(made)}
            kubectl.run("create", "--as", "somebody", "--filename", "-", document=document)

    onlooker = Onlooker(kubectl, models_namespace(deployment))
    with pytest.raises(
        UserError, match=r'jobs\.batch is forbidden: User "somebody" cannot .* `blueprints verify`'
    ):
        load_generator(onlooker, deployment, print).ask(LOAD_TEST)
