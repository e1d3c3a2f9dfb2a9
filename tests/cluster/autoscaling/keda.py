"""KEDA's operator and metrics adapter, from upstream's source, on a control plane."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inference_local.control_plane import artefacts, build
from inference_local.control_plane.certificates import Authority
from inference_local.control_plane.control_plane import LOOPBACK, ControlPlane
from inference_local.processes.free_ports import free_ports
from tests.cluster.controller import controller
from tests.cluster.objects import KubernetesObject
from tests.cluster.state import has, namespace_object
from tests.cluster.webhooks import certificate_folder

_NAMESPACE = "keda"
_METRICS_API = "v1beta1.external.metrics.k8s.io"
_PROXY = "front-proxy-client"
#: Often enough for windows of seconds.
CONTROLLER_FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    *("--kube-api-qps=200", "--kube-api-burst=300"),
)


@dataclass(frozen=True, slots=True)
class KedaMetrics:
    """URLs of the metrics of both programs."""

    operator: str
    adapter: str


def api_server_flags(folder: Path) -> list[str]:
    """Return flags with which the API server passes on requests for metrics, and names the client.

    Source: Kubernetes' documentation, "Configure the Aggregation Layer".
    """
    authority = Authority(folder)
    pair = authority.issue(_PROXY)
    return [
        f"--requestheader-client-ca-file={authority.certificate}",
        f"--requestheader-allowed-names={_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pair.certificate}",
        f"--proxy-client-key-file={pair.key}",
    ]


@contextmanager
def keda(control_plane: ControlPlane) -> Iterator[KedaMetrics]:
    """Run both programs until the API server can ask for metrics."""
    kubectl = control_plane.kubectl
    kubectl.apply([namespace_object(_NAMESPACE)])
    folder = certificate_folder(control_plane, "keda")
    shutil.copy(control_plane.authority.certificate, folder / "ca.crt")
    health, own_metrics, service, adapter, adapter_metrics = free_ports(5)
    operator_command: list[str | Path] = [
        build.program(artefacts.KEDA_OPERATOR, print) / "keda-operator",
        *("--leader-elect=false", "--enable-cert-rotation=false", f"--cert-dir={folder}"),
        f"--metrics-service-bind-address={LOOPBACK}:{service}",
        f"--health-probe-bind-address={LOOPBACK}:{health}",
        f"--metrics-bind-address={LOOPBACK}:{own_metrics}",
        *("--kube-api-qps=200", "--kube-api-burst=300"),
    ]
    adapter_command: list[str | Path] = [
        build.program(artefacts.KEDA_METRICS_ADAPTER, print) / "keda-adapter",
        *(f"--bind-address={LOOPBACK}", f"--secure-port={adapter}", f"--port={adapter_metrics}"),
        *(f"--cert-dir={folder}", f"--tls-cert-file={folder / 'tls.crt'}"),
        f"--tls-private-key-file={folder / 'tls.key'}",
        *(
            f"--{user}-kubeconfig={control_plane.kubeconfig}"
            for user in ("lister", "authentication", "authorization")
        ),
        f"--metrics-service-address={LOOPBACK}:{service}",
    ]
    variables = {
        "WATCH_NAMESPACE": "",
        "POD_NAMESPACE": _NAMESPACE,
        "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE,
    }

    def metrics_are_served() -> bool:
        (service,) = kubectl.get("apiservices", "--field-selector", f"metadata.name={_METRICS_API}")
        return has(service, "Available")

    with (
        controller(control_plane, "keda-operator", operator_command, health, **variables),
        controller(
            control_plane,
            "keda-adapter",
            adapter_command,
            adapter_metrics,
            health_path="/metrics",
            **variables,
        ),
    ):
        kubectl.apply(_metrics_api(adapter))
        kubectl.wait_until(metrics_are_served, "KEDA's metrics API")
        yield KedaMetrics(
            operator=f"http://{LOOPBACK}:{own_metrics}/metrics",
            adapter=f"http://{LOOPBACK}:{adapter_metrics}/metrics",
        )


def _metrics_api(port: int) -> list[KubernetesObject]:
    """Return what makes the API server ask the adapter at a port of this machine."""
    reference = {"name": "keda-metrics-apiserver", "namespace": _NAMESPACE, "port": port}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": reference["name"], "namespace": _NAMESPACE},
            # An endpoint must not have a loopback address, but a name may mean one.
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": _METRICS_API},
            "spec": {
                "service": reference,
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                # The certificate is for localhost, and the API server asks for the service's name.
                "insecureSkipTLSVerify": True,
            },
        },
    ]
