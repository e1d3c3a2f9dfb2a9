"""Access to the processes of a platform through the API server of its cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed
from inference_blueprints.operate.kubernetes.port_forwarding import forward_port
from inference_blueprints.operate.verify.pod_states import restarts_of, unready_reason
from inference_blueprints.operate.verify.serving_access import (
    ANSWER_SECONDS,
    Instance,
    Instances,
    ModelAddress,
)
from inference_blueprints.operate.verify.verified_platform import (
    ClusterReader,
    KubernetesObject,
    VerifiedPlatform,
    holds,
)
from inference_blueprints.serving.engines.kv_transfer import NIXL_METRICS
from inference_blueprints.serving.types import DeploymentPlan, Process

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
        namespace, port = self.platform.namespace(deployment.release), deployment.entry_point.ports[0]
        return forward_port(self.kubectl, namespace, instance.name, port.number)

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
