"""Kueue's controller on a control plane, as its chart configures it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog import node_facts
from inference_local.control_plane import artefacts, build
from inference_local.control_plane.control_plane import (
    ENDLESS_ANNOTATION,
    LOOPBACK,
    ControlPlane,
)
from inference_local.processes.free_ports import free_ports
from tests.cluster.controller import controller
from tests.cluster.objects import KubernetesObject, module_chart, releases, rendered
from tests.cluster.state import has
from tests.cluster.webhooks import certificate_folder, on_loopback
from tests.templates.support import Templates

JOB_NAMESPACE = "inference"
QUEUE_KINDS = ("ResourceFlavor", "ClusterQueue", "LocalQueue")
_GPU = "nvidia.com/gpu"


@contextmanager
def kueue(control_plane: ControlPlane, templates: Templates) -> Iterator[None]:
    """Run Kueue as long as a block lasts, with the chart's settings but for addresses and certificates."""
    health, metrics, webhooks = free_ports(3)
    objects = rendered(releases(templates)["kueue"], module_chart("kueue"))
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
    command: list[str | Path] = [
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


@contextmanager
def active_queues(kubectl: Kubectl, queues: list[KubernetesObject]) -> Iterator[None]:
    """Have queues and flavors as long as a block lasts, active."""
    kubectl.apply(queues)
    own = {each["metadata"]["name"] for each in queues if each["kind"] == "ClusterQueue"}
    kubectl.wait_until(
        lambda: (
            {each["metadata"]["name"] for each in kubectl.get("clusterqueues") if has(each, "Active")} == own
        ),
        "every queue is active",
    )
    yield
    # As at the end of a stack: each waits until Kueue has let go of it.
    for kind in reversed(QUEUE_KINDS):
        scope = ["--namespace", JOB_NAMESPACE] if kind == "LocalQueue" else []
        kubectl.run("delete", kind, "--all", "--timeout=240s", *scope)


def queued_job(name: str, queue: str, devices: int, *, pool: str | None = None) -> KubernetesObject:
    """A job of one pod with some devices that runs for ever; it may name its pool besides its queue."""
    requests = {"cpu": "1", "memory": "1Gi"}
    specification: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {"name": "main", "image": "pause", "resources": {"requests": requests, "limits": {_GPU: devices}}}
        ],
    }
    if pool:
        specification["nodeSelector"] = {node_facts.POOL_LABEL: pool}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": JOB_NAMESPACE,
            "labels": {"kueue.x-k8s.io/queue-name": queue},
        },
        "spec": {"template": {"metadata": {"annotations": ENDLESS_ANNOTATION}, "spec": specification}},
    }


def delete_jobs(kubectl: Kubectl) -> None:
    """Delete every job, and wait until none holds a quota."""
    kubectl.run("delete", "jobs", "--all", "--namespace", JOB_NAMESPACE)
    kubectl.wait_until(
        lambda: not kubectl.get("workloads", "--namespace", JOB_NAMESPACE), "no job holds a quota"
    )


def workload(kubectl: Kubectl, job: str) -> KubernetesObject:
    """What Kueue holds of a job; nothing until Kueue has made its workload, some time after the job."""
    found = [
        each
        for each in kubectl.get("workloads", "--namespace", JOB_NAMESPACE)
        if each["metadata"]["ownerReferences"][0]["name"] == job
    ]
    return found[0] if found else {}


def why_not_admitted(kubectl: Kubectl, job: str) -> str:
    """Why Kueue does not admit a job."""
    conditions = workload(kubectl, job).get("status", {}).get("conditions", [])
    return "".join(each["message"] for each in conditions if each["type"] == "QuotaReserved")
