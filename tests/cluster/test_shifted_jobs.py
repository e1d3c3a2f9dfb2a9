"""The capacity shift's handler lends GPUs to real Kueue's jobs and takes them back, without ending a job."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from capacity_shift import handlers
from moto import mock_aws

from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog import node_facts
from inference_constructs.operations.controller_function import SHIFT_DOCUMENT
from inference_contracts import operations_names, shift_names
from inference_contracts.shift_names import ShiftConfiguration
from inference_local.control_plane.control_plane import ENDLESS_ANNOTATION, ControlPlane
from tests.cluster.deaths import Deaths, intercept
from tests.cluster.group_tokens import GroupTokens
from tests.cluster.kueue import (
    JOB_NAMESPACE,
    QUEUE_KINDS,
    active_queues,
    delete_jobs,
    kueue,
    queued_job,
    why_not_admitted,
    workload,
)
from tests.cluster.nodes import nodes_of
from tests.cluster.objects import KubernetesObject, component_deployments, manifests, own_objects
from tests.cluster.state import has, pods
from tests.runtime.capacity_shift.shift_platform import FREEZE, PLATFORM, Series, create_tables
from tests.runtime.gpu_health.world import QUIET
from tests.runtime.operations.fresh_process import NOBODY, begin_anew
from tests.templates.support import Templates

pytestmark = pytest.mark.timeout(600)

_LOW, _HIGH = 1.0, 12.0


@pytest.fixture(scope="module")
def platform(synthesise: Callable[[str], Templates]) -> Templates:
    """The blueprint whose GPUs move between real time and jobs."""
    return synthesise("capacity-and-health")


@pytest.fixture(scope="module")
def shift_document(platform: Templates) -> Path:
    """The document in the code of the function."""
    (path,) = platform.directory.glob(f"asset.*/{SHIFT_DOCUMENT}")
    return path


@pytest.fixture(scope="module")
def running_workers(control_plane: ControlPlane, platform: Templates) -> Iterator[KubernetesObject]:
    """Kueue with the queue of the pool, all nodes of the pool, and as few workers as there may be."""
    kubectl = control_plane.kubectl
    objects = manifests(platform)
    (pool,) = (each for each in objects if each["kind"] == "NodePool" and each["metadata"]["name"] == "l40s")
    nodes = nodes_of(pool, int(pool["spec"]["limits"]["nodes"]))
    (scaled,) = (
        each
        for each in own_objects(platform)
        if each["kind"] == "ScaledObject" and each["metadata"]["name"].endswith("-worker")
    )
    name = scaled["metadata"]["name"]
    worker = next(
        each for each in component_deployments(own_objects(platform)) if each["metadata"]["name"] == name
    )
    worker["spec"]["replicas"] = scaled["spec"]["minReplicaCount"]
    roles = [each for each in objects if each["metadata"]["name"] == operations_names.SHIFT_GROUP]
    with (
        _applied(kubectl, [*nodes, *roles, scaled, worker, _autoscaler(scaled)]),
        kueue(control_plane, platform),
        active_queues(kubectl, [each for each in objects if each["kind"] in QUEUE_KINDS]),
    ):
        kubectl.wait_until(
            lambda: _status(kubectl).get("currentReplicas") == worker["spec"]["replicas"],
            "the autoscaler sees the workers",
        )
        yield scaled
        delete_jobs(kubectl)


@contextmanager
def _applied(kubectl: Kubectl, objects: list[KubernetesObject]) -> Iterator[None]:
    """Have objects as long as a block lasts. They also go if it fails: other files count these pods."""
    kubectl.apply(objects)
    try:
        yield
    finally:
        document = {"apiVersion": "v1", "kind": "List", "items": objects[::-1]}
        kubectl.run("delete", "--ignore-not-found", "--filename", "-", document=document)


def _autoscaler(scaled: KubernetesObject) -> KubernetesObject:
    """The autoscaler that KEDA would create for a ScaledObject; here its metrics are never known."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"keda-hpa-{scaled['metadata']['name']}", "namespace": JOB_NAMESPACE},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": scaled["metadata"]["name"],
            },
            "minReplicas": scaled["spec"]["minReplicaCount"],
            "maxReplicas": scaled["spec"]["maxReplicaCount"],
        },
    }


@dataclass
class Shift:
    """The function, in a process that lives until it dies."""

    kubectl: Kubectl
    configuration: ShiftConfiguration
    series: Series
    deaths: Deaths = field(default_factory=Deaths)

    def demand(self, workers: float) -> None:
        """Let real time need some workers, since fifteen minutes at least."""
        each = self.configuration.workers[0]
        self.series.in_flight = {each.release: workers * each.capacity}

    def run(self) -> None:
        handlers.shift({}, None)

    def survives(self) -> bool:
        for cached in (handlers._cell, handlers._run):
            cached.cache_clear()
        return self.deaths.survived(self.run)

    @property
    def given(self) -> tuple[int, int]:
        """The floor of the workers, and the GPUs that jobs may have, as the API server stores them."""
        (scaled,) = self.kubectl.get("scaledobjects", "--namespace", JOB_NAMESPACE)
        (queue,) = self.kubectl.get("clusterqueues")
        (quota,) = (
            int(resource["nominalQuota"])
            for resource in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
            if resource["name"] == self.configuration.queues[0].resource
        )
        return int(scaled["spec"]["minReplicaCount"]), quota


@pytest.fixture
def shift(
    control_plane: ControlPlane,
    group_tokens: GroupTokens,
    running_workers: KubernetesObject,
    shift_document: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shift]:
    """The function with the document, role and objects of the blueprint."""
    token = group_tokens.of(operations_names.SHIFT_GROUP)
    configuration = ShiftConfiguration.from_json(shift_document.read_text("utf-8"))
    begin_anew(monkeypatch, NOBODY | QUIET)
    authority = base64.b64encode(control_plane.authority.certificate.read_bytes()).decode()
    for name, value in {
        operations_names.PLATFORM: PLATFORM,
        operations_names.CELL: operations_names.MAIN_CELL,
        operations_names.TABLE: "operations",
        operations_names.FREEZE_PARAMETER: FREEZE,
        operations_names.TOPIC_ARN: "arn:aws:sns:us-west-2:111122223333:people",
        operations_names.CLUSTER: PLATFORM,
        operations_names.CLUSTER_ENDPOINT: control_plane.address,
        operations_names.CLUSTER_AUTHORITY: authority,
        shift_names.SHIFT_CONFIGURATION: str(shift_document),
        shift_names.SHIFT_BATCH_TABLE: "records",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        create_tables()
        series = Series({})
        series.begin = time.time() - 2 * 86400
        monkeypatch.setattr("operations.controller_settings.function_promql", lambda _: series)
        monkeypatch.setattr("operations.kubernetes_api.cluster_token", lambda *_: token)
        for cached in (handlers._cell, handlers._run):
            cached.cache_clear()
        made = Shift(control_plane.kubectl, configuration, series)
        intercept(monkeypatch, made.deaths)
        yield made
    for cached in (handlers._cell, handlers._run):
        cached.cache_clear()


def test_jobs_get_what_is_lent_and_end_by_themselves_when_it_is_taken_back(
    shift: Shift, kubectl: Kubectl
) -> None:
    minimum, maximum = (getattr(shift.configuration.workers[0], name) for name in ("least", "most"))
    queue = shift.configuration.queues[0]
    assert shift.given == (minimum, queue.quota) == (4, 1)
    kubectl.apply([queued_job(name, queue.pool, 1, pool=queue.pool) for name in ("one", "two", "three")])
    kubectl.wait_until(lambda: len(_running(kubectl)) == 1, "the queue's own GPU is taken")
    kubectl.wait_until(lambda: _someone_waits(kubectl), "the next job waits")
    assert len(_running(kubectl)) == 1

    shift.demand(_LOW)
    shift.run()
    assert shift.given == (minimum, queue.accelerators - minimum)
    kubectl.wait_until(lambda: len(_running(kubectl)) == 3, "what is lent admits the jobs that wait")
    admitted = _running(kubectl)

    # Real time needs its GPUs back. The function dies after each of its changes.
    shift.demand(_HIGH)
    shift.deaths.active = True
    for _ in range(20):
        if shift.survives():
            break
    assert [each.partition(" ")[2] for each in shift.deaths.after if each.startswith("PATCH")] == [
        *("scaledobjects", "clusterqueues")
    ], "real time comes first, and each is patched once"
    assert shift.given == (maximum, queue.quota)
    kubectl.apply([queued_job("four", queue.pool, 1, pool=queue.pool)])
    kubectl.wait_until(lambda: "insufficient" in why_not_admitted(kubectl, "four"), "the next job waits")
    _as_keda(kubectl, maximum)
    kubectl.wait_until(
        lambda: _workers(kubectl) == queue.accelerators - len(admitted), "workers take the rest"
    )
    assert _running(kubectl) == admitted, "nothing that runs is ended"

    # Each job ends at its own time, and its GPU goes to a worker; the last one is that of the queue.
    for name in ("one", "two", "three"):
        _let_end(kubectl, name)
    kubectl.wait_until(lambda: set(_running(kubectl)) == {"four"}, "the queue's own GPU takes the next job")
    kubectl.wait_until(lambda: _workers(kubectl) == maximum, "every worker runs")
    for job in kubectl.get("jobs", "--namespace", JOB_NAMESPACE):
        ended = job["metadata"]["name"] != "four"
        assert (job["status"].get("succeeded", 0), job["status"].get("failed", 0)) == (int(ended), 0)
        assert not has(workload(kubectl, job["metadata"]["name"]), "Evicted")


def _as_keda(kubectl: Kubectl, floor: int) -> None:
    """Pass the floor of the ScaledObject on to its autoscaler, as KEDA does, which is not here."""
    (autoscaler,) = kubectl.get("hpa", "--namespace", JOB_NAMESPACE)
    name = autoscaler["metadata"]["name"]
    change = f'{{"spec": {{"minReplicas": {floor}}}}}'
    kubectl.run("patch", "hpa", name, "--namespace", JOB_NAMESPACE, "--type", "merge", "--patch", change)


def _status(kubectl: Kubectl) -> dict[str, Any]:
    (autoscaler,) = kubectl.get("hpa", "--namespace", JOB_NAMESPACE)
    return dict(autoscaler.get("status", {}))


def _running(kubectl: Kubectl) -> dict[str, str]:
    """Return the pod of each job that runs. KWOK leaves a pod that has ended ready."""
    return {
        each["metadata"]["labels"]["batch.kubernetes.io/job-name"]: each["metadata"]["uid"]
        for each in pods(kubectl, JOB_NAMESPACE)
        if has(each, "Ready")
        and each["status"]["phase"] == "Running"
        and "batch.kubernetes.io/job-name" in each["metadata"]["labels"]
    }


def _someone_waits(kubectl: Kubectl) -> bool:
    """Return whether Kueue refused a job. It does not look at jobs that are like one it refused."""
    return any("insufficient" in why_not_admitted(kubectl, name) for name in ("one", "two", "three"))


def _workers(kubectl: Kubectl) -> int:
    """Count the workers that run on nodes of the pool."""
    return sum(
        has(each, "Ready")
        for each in pods(kubectl, JOB_NAMESPACE)
        if each["metadata"]["labels"].get(node_facts.POOL_LABEL) == "l40s"
    )


def _let_end(kubectl: Kubectl, job: str) -> None:
    """Let the pod of a job end its work."""
    (annotation,) = ENDLESS_ANNOTATION
    selector = f"batch.kubernetes.io/job-name={job}"
    kubectl.run("annotate", "pods", "--namespace", JOB_NAMESPACE, "--selector", selector, f"{annotation}-")
