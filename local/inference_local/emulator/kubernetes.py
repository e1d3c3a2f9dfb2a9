"""The interface between CloudFormation and a Kubernetes cluster, and charts rendered with real helm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

KubernetesObject = Mapping[str, Any]


class KubernetesRejection(Exception):  # noqa: N818 - CloudFormation shows it as the reason of a failed resource
    """The cluster refuses an object, a chart or a removal. The text contains the reason."""


@dataclass(frozen=True)
class EmulatedCluster:
    """An emulated EKS cluster."""

    name: str
    """Name of the EKS cluster."""
    kubernetes_version: str


@dataclass(frozen=True)
class ChartReference:
    """A chart in a registry."""

    repository: str
    """Address of the repository. An ``oci://`` address includes the chart."""
    chart: str
    """Name in the repository."""
    version: str
    """Version. If empty, the newest."""


@dataclass(frozen=True)
class ChartArchive:
    """A chart that was deployed as an asset."""

    content: bytes
    """Bytes of the zip file with the chart's folder as its root."""


@dataclass(frozen=True)
class ReleaseInstallation:
    """A Helm release."""

    name: str
    namespace: str
    """Where it is installed."""
    create_namespace: bool
    """Whether to create the namespace if it is missing."""
    chart: ChartReference | ChartArchive
    values: Mapping[str, Any]
    """Values that override the chart's defaults."""


class ClusterBackend(Protocol):
    """Replaces the Kubernetes API of the EKS clusters. Refusals raise `KubernetesRejection`."""

    def apply_manifest(
        self,
        cluster: EmulatedCluster,
        objects: Sequence[KubernetesObject],
        *,
        must_be_new: bool,
        prune_label: str | None,
    ) -> None:
        """Create or change objects, in order, and remove other objects with the label."""

    def delete_manifest(self, cluster: EmulatedCluster, objects: Sequence[KubernetesObject]) -> None:
        """Remove objects. A missing object is not an error."""

    def install_chart(self, cluster: EmulatedCluster, release: ReleaseInstallation) -> None:
        """Install a release, or upgrade it when it exists."""

    def uninstall_chart(self, cluster: EmulatedCluster, namespace: str, release: str) -> None:
        """Remove a release and its objects. A missing release is not an error."""


_TIMEOUT_SECONDS = 60


def render(
    helm: Path,
    chart: Path,
    *,
    release: str,
    namespace: str,
    values: Mapping[str, Any],
    kubernetes_version: str,
) -> list[dict[str, Any]]:
    """Return the objects that a chart installs, including its custom resource definitions.

    chart: Folder of the chart.
    namespace: Namespace of the release.
    values: Values that override the chart's defaults. Helm enforces the chart's ``values.schema.json``.
    kubernetes_version: Version of the cluster in the chart's templates, such as ``1.35``.
    Raises KubernetesRejection if it does not render, with helm's message.
    """
    command = [
        *(str(helm), "template", release, str(chart), "--namespace", namespace),
        *("--kube-version", kubernetes_version, "--include-crds", "--values", "-"),
    ]
    result = subprocess.run(
        command,
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if result.returncode:
        reason = " ".join(result.stderr.split())
        raise KubernetesRejection(f"helm cannot render release {release}: {reason}")
    return [document for document in yaml.safe_load_all(result.stdout) if document]
