"""The real Kueue, with the chart's own settings and webhooks, lets jobs onto the pools through our queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog import node_facts
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster import matrix
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
from tests.cluster.objects import KubernetesObject, manifests
from tests.cluster.state import has
from tests.templates.support import Templates

_GPU = "nvidia.com/gpu"
#: Two pools of whole nodes, of which the models leave one node each; the first borrows of the second.
_OWN, _LENDER = "p5", "p4d"
_WHOLE_NODE = 8


@pytest.fixture(scope="module")
def running_kueue(control_plane: ControlPlane, matrix_platform: Templates) -> Iterator[None]:
    """Kueue, for the tests of this file."""
    with kueue(control_plane, matrix_platform):
        yield


@pytest.fixture(scope="module")
def quotas(
    control_plane: ControlPlane, running_kueue: None, matrix_platform: Templates
) -> Iterator[dict[str, int]]:
    """The queues of every kind of pool, active, and a node for each accelerated one; GPUs by queue."""
    kubectl = control_plane.kubectl
    objects = manifests(matrix_platform)
    queues = [each for each in objects if each["kind"] in QUEUE_KINDS]
    nodes = [
        node
        for each in objects
        if each["kind"] == "NodePool" and each["metadata"]["name"] in matrix.POOLS
        for node in nodes_of(each, 1)
    ]
    kubectl.apply(nodes)
    own = {
        each["metadata"]["name"]: each["spec"]["resourceGroups"][0]["flavors"][0]
        for each in queues
        if each["kind"] == "ClusterQueue"
    }
    with active_queues(kubectl, queues):
        yield {
            name: int(resource["nominalQuota"])
            for name, flavor in own.items()
            for resource in flavor["resources"]
            if resource["name"] == _GPU
        }
    kubectl.run("delete", "nodes", *(each["metadata"]["name"] for each in nodes))


@pytest.fixture
def submit(kubectl: Kubectl, quotas: dict[str, int]) -> Iterator[Callable[..., None]]:
    """Create jobs, each of one pod that runs until the test is over."""

    def create(*jobs: KubernetesObject) -> None:
        kubectl.apply(jobs)

    yield create
    delete_jobs(kubectl)


def test_jobs_run_on_the_pool_of_their_queue(
    kubectl: Kubectl, submit: Callable[..., None], quotas: dict[str, int]
) -> None:
    admitting = {name: quota for name, quota in quotas.items() if quota}
    assert {_OWN, _LENDER} < set(admitting) < set(quotas), "models take all of some pools"

    submit(*(queued_job(name, name, min(quota, _WHOLE_NODE)) for name, quota in admitting.items()))
    kubectl.wait_until(lambda: set(_pools_of_jobs(kubectl)) == set(admitting), "a pod of every job runs")

    assert _pools_of_jobs(kubectl) == {name: name for name in admitting}


def test_a_job_over_the_quota_waits_for_those_before_it(
    kubectl: Kubectl, submit: Callable[..., None], quotas: dict[str, int]
) -> None:
    submit(queued_job("first", _OWN, quotas[_OWN]))
    kubectl.wait_until(lambda: _pools_of_jobs(kubectl) == {"first": _OWN}, "the first job runs")
    # It names its pool, so it does not borrow.
    submit(queued_job("second", _OWN, 1, pool=_OWN))
    kubectl.wait_until(lambda: why_not_admitted(kubectl, "second") != "", "the second job is looked at")
    assert "insufficient unused quota for nvidia.com/gpu" in why_not_admitted(kubectl, "second")
    assert _pools_of_jobs(kubectl) == {"first": _OWN}

    kubectl.run("delete", "job", "first", "--namespace", JOB_NAMESPACE)
    kubectl.wait_until(lambda: _pools_of_jobs(kubectl) == {"second": _OWN}, "the second job runs")


def test_what_is_borrowed_goes_back_to_the_pool_s_own_jobs(
    kubectl: Kubectl, submit: Callable[..., None], quotas: dict[str, int]
) -> None:
    submit(queued_job("own", _OWN, quotas[_OWN]))
    kubectl.wait_until(lambda: _pools_of_jobs(kubectl) == {"own": _OWN}, "the first job runs")
    submit(queued_job("borrower", _OWN, _WHOLE_NODE))
    kubectl.wait_until(
        lambda: _pools_of_jobs(kubectl) == {"own": _OWN, "borrower": _LENDER}, "the second job borrows"
    )

    submit(queued_job("owner", _LENDER, quotas[_LENDER]))
    kubectl.wait_until(
        lambda: _pools_of_jobs(kubectl).get("owner") == _LENDER, "the lender's own job has its nodes"
    )

    assert _preempted(kubectl, "borrower")
    assert _pools_of_jobs(kubectl)["own"] == _OWN
    assert _pools_of_jobs(kubectl).get("borrower") != _LENDER


def _pools_of_jobs(kubectl: Kubectl) -> dict[str, str]:
    """The pool on which the pod of each job is ready, by job."""
    pools = {
        each["metadata"]["name"]: each["metadata"]["labels"].get(node_facts.POOL_LABEL, "")
        for each in kubectl.get("nodes")
    }
    return {
        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]: pools[pod["spec"]["nodeName"]]
        for pod in kubectl.get("pods", "--namespace", JOB_NAMESPACE)
        if has(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]
    }


def _preempted(kubectl: Kubectl, job: str) -> bool:
    """Whether Kueue took a job's quota back for the queue that had lent it."""
    events = kubectl.get("events", "--namespace", JOB_NAMESPACE)
    name = workload(kubectl, job)["metadata"]["name"]
    return any(
        each["involvedObject"]["name"] == name
        and each["reason"] == "Preempted"
        and "reclamation" in each["message"]
        for each in events
    )
