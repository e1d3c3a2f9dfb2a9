"""The platform that is verified: an account, its cluster, and how checks reach the processes in it."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.kubernetes import KubectlFailed, forward_port
from inference_blueprints.operate.verify.serving_access import (
    ANSWER_SECONDS,
    Instance,
    Instances,
    ModelAddress,
    Transferred,
)
from inference_blueprints.operate.verify.synthesised_platform import SynthesisedPlatform
from inference_blueprints.serving.engines.kv_cache import NIXL_METRICS
from inference_blueprints.serving.types import DeploymentPlan, Process, ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_identities import BEHIND_PORT
from inference_contracts.records import dataclass

KubernetesObject = dict[str, Any]


class ClusterReader(Protocol):
    """The read-only part of kubectl."""

    def get(self, *arguments: str) -> list[KubernetesObject]:
        """Return objects."""

    def run(self, *arguments: str) -> str:
        """Return the output of a command."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that keeps running."""


@dataclass(frozen=True, slots=True)
class VerifiedPlatform:
    """A platform that was deployed."""

    account: Account
    blueprint: Blueprint
    plan: ServingPlan
    assembly: SynthesisedPlatform
    """The blueprint's present templates."""
    name_or_path: str
    """Name or path of the blueprint, for commands."""
    now: datetime
    """Time of the checks, with a time zone."""

    @property
    def name(self) -> str:
        """Name of the platform, and of its cluster."""
        return self.blueprint.metadata.name

    @property
    def deploy_command(self) -> str:
        """The command that fixes most problems."""
        return f"blueprints deploy {self.name_or_path}"

    def namespace(self, release: str) -> str:
        """Return the namespace of a release of the blueprint."""
        return self.assembly.releases[release].namespace

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the platform's region."""
        return f"aws {words} --region {self.account.region}"


def condition(kubernetes_object: KubernetesObject, name: str) -> KubernetesObject:
    """Return a condition of an object's status; empty if it has none of this name.

    kubernetes_object: The object from the API server.
    """
    conditions = kubernetes_object.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})


def holds(kubernetes_object: KubernetesObject, name: str) -> bool:
    """Whether a condition is true.

    kubernetes_object: As the API server holds it.
    """
    return condition(kubernetes_object, name).get("status") == "True"


def unready_reason(pod: KubernetesObject) -> str:
    """Return why a pod is not ready, according to the scheduler, its containers or its readiness gates.

    pod: The pod from the API server.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"has no node: {scheduled.get('message', scheduled.get('reason'))}"
    status = pod.get("status", {})
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        for kind in ("waiting", "terminated"):
            state = container.get("state", {}).get(kind)
            if state and state.get("reason") not in (None, "Completed", "PodInitializing"):
                return f"{container['name']} is {state['reason']}: {state.get('message', 'no message')}"
    others = [
        f"{each['type']}: {each.get('message') or each.get('reason') or each['status']}"
        for each in status.get("conditions", [])
        if each["status"] != "True" and each["type"] != "Ready"
    ]
    return "; ".join(others) or f"is {status.get('phase', 'unknown')}"


def restarts_of(pod: KubernetesObject) -> Iterator[str]:
    """Yield how often each container of a pod was restarted, and the last reason."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if container.get("restartCount"):
            last = container.get("lastState", {}).get("terminated", {})
            why = f"{last.get('reason', 'no reason')}, exit code {last.get('exitCode', 'unknown')}"
            yield f"{pod['metadata']['name']} was restarted {container['restartCount']} times (last: {why})"


# Access to the processes of a platform through the API server of its cluster.

#: Longest time of a page of metrics.
_METRICS_SECONDS = 10
#: Labels that our charts put on pods.
_INSTANCE, _COMPONENT = "app.kubernetes.io/instance", "app.kubernetes.io/component"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The pods of a platform's cluster."""

    platform: VerifiedPlatform
    kubectl: ClusterReader
    """Client of the cluster."""
    answer_seconds: float = ANSWER_SECONDS
    """Longest time of one answer."""

    def instances(self, deployment: DeploymentPlan) -> Instances:
        """Return the pods of a deployment by the name of their process."""
        found = self.pods(deployment)
        return {name: [_instance(pod, name) for pod in pods] for name, pods in found.items()}

    def pods(self, deployment: DeploymentPlan) -> dict[str, list[KubernetesObject]]:
        """Return the pods of a deployment by process, without those that are being deleted."""
        found = self.kubectl.get(
            *("pods", "--namespace", self.platform.namespace(deployment.release)),
            *("--selector", f"{_INSTANCE}={deployment.release}"),
        )
        return {
            process.name: [
                pod
                for pod in found
                if pod["metadata"]["labels"].get(_COMPONENT) == process.name
                and "deletionTimestamp" not in pod["metadata"]
            ]
            for process in deployment.processes
        }

    def expected(self, deployment: DeploymentPlan, process: Process) -> int:  # noqa: ARG002 -- a pod count has no other source
        """Return the smallest number of pods of a process."""
        return process.replicas * process.nodes

    def log(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the log of a pod's main container."""
        namespace = self.platform.namespace(deployment.release)
        return self.kubectl.run("logs", "--namespace", namespace, instance.name, "--container", "main")

    def metrics(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the pages at a worker's readiness port, and at NIXL's port if it has one."""
        (process,) = [each for each in deployment.processes if each.name == instance.process]
        if process.callers:
            return self._metrics_behind(deployment, instance.name)
        ports = _metrics_ports(process)
        return "\n".join(self.metrics_page(deployment, instance.name, port) for port in ports)

    def metrics_page(self, deployment: DeploymentPlan, pod: str, port: int) -> str:
        """Return the metrics of a pod at a port; empty if it does not answer."""
        path = f"/api/v1/namespaces/{self.platform.namespace(deployment.release)}/pods/{pod}:{port}"
        try:
            return self.kubectl.run("get", "--raw", f"{path}/proxy/metrics")
        except KubectlFailed:
            return ""

    def open_frontend(self, deployment: DeploymentPlan, instance: Instance) -> AbstractContextManager[str]:
        """Forward a port of this machine to a pod of the entry point."""
        namespace = self.platform.namespace(deployment.release)
        return forward_port(self.kubectl, namespace, instance.name, forwarded_port(deployment.entry_point))

    def _metrics_behind(self, deployment: DeploymentPlan, pod: str) -> str:
        """Return the metrics of a program that listens at the loopback address of its pod."""
        namespace = self.platform.namespace(deployment.release)
        try:
            with (
                forward_port(self.kubectl, namespace, pod, BEHIND_PORT) as address,
                urllib.request.urlopen(f"{address}/metrics", timeout=_METRICS_SECONDS) as answer,  # noqa: S310
            ):
                return str(answer.read().decode())
        except (KubectlFailed, OSError):
            return ""

    def model_address(self, model: str) -> ModelAddress:
        """Return the address that the model's stack has as output."""
        template = self.platform.assembly.templates[f"{self.platform.name}-Model-{model}"]
        command = self.platform.aws("elbv2 describe-target-groups")
        return ModelAddress(template["Outputs"]["Endpoint"]["Value"], only_in_vpc=True, command=command)

    def look_command(self, deployment: DeploymentPlan, process: Process) -> str:
        """Return the command that describes the pods of a process."""
        namespace = self.platform.namespace(deployment.release)
        labels = f"{_INSTANCE}={deployment.release},{_COMPONENT}={process.name}"
        return f"kubectl describe pods --namespace {namespace} --selector {labels}"

    def log_command(self, deployment: DeploymentPlan, instance: Instance | None, *words: str) -> str:
        """Return the command that searches the logs of pods."""
        pods = instance.name if instance else f"--selector {_INSTANCE}={deployment.release} --tail -1"
        namespace = self.platform.namespace(deployment.release)
        sought = " ".join(f"-e {word}" for word in words)
        return f"kubectl logs --namespace {namespace} {pods} --container main | grep -i {sought}"


def forwarded_port(entry: Process) -> int:
    """Return the port of an entry point that a forwarded connection uses.

    It begins in the network of the pod (containerd, ``internal/cri/server/sandbox_portforward_linux.go``), so
    it reaches a program behind the sidecar of callers. Who may forward ports, the API server decides.
    """
    return BEHIND_PORT if entry.callers else entry.ports[0].number


def _metrics_ports(process: Process) -> list[int]:
    """Return the metrics ports of a worker: its readiness port, and NIXL's port if it has one."""
    names = {process.probes.readiness.port, NIXL_METRICS.name}
    return [port.number for port in process.ports if port.name in names]


def _instance(pod: KubernetesObject, process: str) -> Instance:
    return Instance(
        name=pod["metadata"]["name"],
        process=process,
        unready="" if holds(pod, "Ready") else unready_reason(pod),
        restarts=tuple(restarts_of(pod)),
    )


# A deployed platform whose API server answers.


@dataclass(frozen=True, slots=True)
class RunningPlatform:
    """A platform with its API server."""

    platform: VerifiedPlatform
    kubectl: ClusterReader
    transferred: Mapping[str, Transferred] = field(default_factory=dict)
    answered: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """`transferred`, `answered`: Counters before the requests of the checks, as `ServedPlatform` describes
    them."""

    @property
    def blueprint(self) -> Blueprint:
        """The blueprint."""
        return self.platform.blueprint

    @property
    def plan(self) -> ServingPlan:
        """The blueprint's plan."""
        return self.platform.plan

    @property
    def access(self) -> ClusterAccess:
        """Access to its pods."""
        return ClusterAccess(self.platform, self.kubectl)
