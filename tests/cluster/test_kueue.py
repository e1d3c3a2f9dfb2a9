"""The real Kueue, with the chart's own settings and webhooks, lets jobs onto the pools through our queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from inference_blueprints.catalog import placement
from inference_blueprints.deployment.kubernetes.kubectl import Kubectl
from inference_blueprints.local.control_plane import artefacts, build
from inference_blueprints.local.control_plane.control_plane import (
    ENDLESS_ANNOTATION,
    LOOPBACK,
    ControlPlane,
)
from inference_blueprints.processes.free_ports import free_ports
from tests.cluster import matrix
from tests.cluster.controller import controller
from tests.cluster.nodes import nodes_of
from tests.cluster.objects import KubernetesObject, manifests, module_chart, releases, rendered
from tests.cluster.state import has
from tests.cluster.webhooks import certificate_folder, on_loopback
from tests.templates.support import Templates

_NAMESPACE = "inference"
_KINDS = ("ResourceFlavor", "ClusterQueue", "LocalQueue")
_GPU = "nvidia.com/gpu"
#: Two pools of whole nodes, of which the models leave one node each; the first borrows of the second.
_OWN, _LENDER = "p5", "p4d"
_WHOLE_NODE = 8


@pytest.fixture(scope="module")
def kueue(control_plane: ControlPlane, matrix_platform: Templates) -> Iterator[None]:
    """Kueue as the chart configures it, but for addresses and certificates."""
    health, metrics, webhooks = free_ports(3)
    objects = rendered(releases(matrix_platform)["kueue"], module_chart("kueue"))
    folder = certificate_folder(control_plane, "kueue")
    (settings,) = (each["data"].values() for each in objects if each["kind"] == "ConfigMap")
    (text,) = settings
    configuration = {
        **yaml.safe_load(text),
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "metrics": {"bindAddress": f"{LOOPBACK}:{metrics}"},
        "webhook": {"host": LOOPBACK, "port": webhooks, "certDir": str(folder)},
    }
    (folder / "configuration.yaml").write_text(yaml.safe_dump(configuration))
    command = [
        build.program(artefacts.KUEUE, print) / "kueue",
        f"--config={folder / 'configuration.yaml'}",
        # Listens on every address, and nothing here asks it.
        "--feature-gates=VisibilityOnDemand=false",
    ]
    kubectl = control_plane.kubectl
    hooks = [
        on_loopback(each, f"here-{each['metadata']['name']}", control_plane, webhooks)
        for each in objects
        if each["kind"].endswith("WebhookConfiguration")
    ]
    with controller(control_plane, "kueue", command, health):
        kubectl.apply(hooks)
        yield
        for each in hooks:
            kubectl.run("delete", each["kind"], each["metadata"]["name"])


@pytest.fixture(scope="module")
def quotas(control_plane: ControlPlane, kueue: None, matrix_platform: Templates) -> Iterator[dict[str, int]]:
    """The queues of every kind of pool, active, and a node for each accelerated one; GPUs by queue."""
    kubectl = control_plane.kubectl
    objects = manifests(matrix_platform)
    queues = [each for each in objects if each["kind"] in _KINDS]
    nodes = [
        node
        for each in objects
        if each["kind"] == "NodePool" and each["metadata"]["name"] in matrix.POOLS
        for node in nodes_of(each, 1)
    ]
    kubectl.apply([*queues, *nodes])
    own = {
        each["metadata"]["name"]: each["spec"]["resourceGroups"][0]["flavors"][0]
        for each in queues
        if each["kind"] == "ClusterQueue"
    }
    kubectl.wait_until(
        lambda: (
            {each["metadata"]["name"] for each in kubectl.get("clusterqueues") if has(each, "Active")}
            == set(own)
        ),
        "every queue is active",
    )
    yield {
        name: int(resource["nominalQuota"])
        for name, flavor in own.items()
        for resource in flavor["resources"]
        if resource["name"] == _GPU
    }
    # As at the end of a stack: each waits until Kueue has let go of it.
    for kind in reversed(_KINDS):
        scope = ["--namespace", _NAMESPACE] if kind == "LocalQueue" else []
        kubectl.run("delete", kind, "--all", "--timeout=60s", *scope)
    kubectl.run("delete", "nodes", *(each["metadata"]["name"] for each in nodes))


@pytest.fixture
def submit(kubectl: Kubectl, quotas: dict[str, int]) -> Iterator[Callable[..., None]]:
    """Create jobs, each of one pod that runs until the test is over."""

    def create(*jobs: KubernetesObject) -> None:
        kubectl.apply(jobs)

    yield create
    kubectl.run("delete", "jobs", "--all", "--namespace", _NAMESPACE)
    kubectl.wait_until(
        lambda: not kubectl.get("workloads", "--namespace", _NAMESPACE), "no job holds a quota"
    )


def test_jobs_run_on_the_pool_of_their_queue(
    kubectl: Kubectl, submit: Callable[..., None], quotas: dict[str, int]
) -> None:
    admitting = {name: quota for name, quota in quotas.items() if quota}
    assert {_OWN, _LENDER} < set(admitting) < set(quotas), "models take all of some pools"

    submit(*(_job(name, name, min(quota, _WHOLE_NODE)) for name, quota in admitting.items()))
    kubectl.wait_until(lambda: set(_pools_of_jobs(kubectl)) == set(admitting), "a pod of every job runs")

    assert _pools_of_jobs(kubectl) == {name: name for name in admitting}


def test_a_job_over_the_quota_waits_for_those_before_it(
    kubectl: Kubectl, submit: Callable[..., None], quotas: dict[str, int]
) -> None:
    submit(_job("first", _OWN, quotas[_OWN]))
    kubectl.wait_until(lambda: _pools_of_jobs(kubectl) == {"first": _OWN}, "the first job runs")
    # It names its pool, so it does not borrow.
    submit(_job("second", _OWN, 1, pool=_OWN))
    kubectl.wait_until(lambda: _words(kubectl, "second") != "", "the second job is looked at")
    assert "insufficient unused quota for nvidia.com/gpu" in _words(kubectl, "second")
    assert _pools_of_jobs(kubectl) == {"first": _OWN}

    kubectl.run("delete", "job", "first", "--namespace", _NAMESPACE)
    kubectl.wait_until(lambda: _pools_of_jobs(kubectl) == {"second": _OWN}, "the second job runs")


def test_what_is_borrowed_goes_back_to_the_pool_s_own_jobs(
    kubectl: Kubectl, submit: Callable[..., None], quotas: dict[str, int]
) -> None:
    submit(_job("own", _OWN, quotas[_OWN]))
    kubectl.wait_until(lambda: _pools_of_jobs(kubectl) == {"own": _OWN}, "the first job runs")
    submit(_job("borrower", _OWN, _WHOLE_NODE))
    kubectl.wait_until(
        lambda: _pools_of_jobs(kubectl) == {"own": _OWN, "borrower": _LENDER}, "the second job borrows"
    )

    submit(_job("owner", _LENDER, quotas[_LENDER]))
    kubectl.wait_until(
        lambda: _pools_of_jobs(kubectl).get("owner") == _LENDER, "the lender's own job has its nodes"
    )

    assert _preempted(kubectl, "borrower")
    assert _pools_of_jobs(kubectl)["own"] == _OWN
    assert _pools_of_jobs(kubectl).get("borrower") != _LENDER


def _job(name: str, queue: str, devices: int, *, pool: str | None = None) -> KubernetesObject:
    """A job of one pod with some devices; it may name its pool besides its queue."""
    requests = {"cpu": "1", "memory": "1Gi"}
    specification: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {"name": "main", "image": "pause", "resources": {"requests": requests, "limits": {_GPU: devices}}}
        ],
    }
    if pool:
        specification["nodeSelector"] = {placement.POOL_LABEL: pool}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": _NAMESPACE,
            "labels": {"kueue.x-k8s.io/queue-name": queue},
        },
        "spec": {"template": {"metadata": {"annotations": ENDLESS_ANNOTATION}, "spec": specification}},
    }


def _pools_of_jobs(kubectl: Kubectl) -> dict[str, str]:
    """The pool on which the pod of each job is ready, by job."""
    pools = {
        each["metadata"]["name"]: each["metadata"]["labels"].get(placement.POOL_LABEL, "")
        for each in kubectl.get("nodes")
    }
    return {
        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]: pools[pod["spec"]["nodeName"]]
        for pod in kubectl.get("pods", "--namespace", _NAMESPACE)
        if has(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]
    }


def _workload(kubectl: Kubectl, job: str) -> KubernetesObject:
    """What Kueue holds of a job; nothing until Kueue has made its workload, some time after the job."""
    found = [
        each
        for each in kubectl.get("workloads", "--namespace", _NAMESPACE)
        if each["metadata"]["ownerReferences"][0]["name"] == job
    ]
    return found[0] if found else {}


def _words(kubectl: Kubectl, job: str) -> str:
    """Why Kueue does not admit a job."""
    conditions = _workload(kubectl, job).get("status", {}).get("conditions", [])
    return "".join(each["message"] for each in conditions if each["type"] == "QuotaReserved")


def _preempted(kubectl: Kubectl, job: str) -> bool:
    """Whether Kueue took a job's quota back for the queue that had lent it."""
    events = kubectl.get("events", "--namespace", _NAMESPACE)
    name = _workload(kubectl, job)["metadata"]["name"]
    return any(
        each["involvedObject"]["name"] == name
        and each["reason"] == "Preempted"
        and "reclamation" in each["message"]
        for each in events
    )
