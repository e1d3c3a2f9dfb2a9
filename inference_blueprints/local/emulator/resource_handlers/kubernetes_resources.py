"""CDK's custom resources for Kubernetes, handed to a `ClusterBackend` instead of the kubectl Lambda.

The properties are those that CDK's handler reads (aws-cdk-lib, custom-resource-handlers, aws-eks
kubectl-handler): numbers and booleans may arrive as text.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

from ministack.services import eks, s3

from inference_blueprints.local.emulator.kubernetes import (
    ChartArchive,
    ChartReference,
    Cluster,
    ClusterBackend,
    KubernetesRejection,
    Release,
)
from inference_blueprints.local.emulator.resource_handlers.registry import Attributes, Properties, register

MANIFEST_TYPE = "Custom::AWSCDK-EKS-KubernetesResource"
CHART_TYPE = "Custom::AWSCDK-EKS-HelmChart"
UNSUPPORTED_TYPES = ("Custom::AWSCDK-EKS-KubernetesObjectValue", "Custom::AWSCDK-EKS-KubernetesPatch")


def _physical_id(stack: str, logical_id: str) -> str:
    return f"{logical_id}-{hashlib.sha256(stack.encode()).hexdigest()[:12]}"


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _cluster(properties: Properties) -> Cluster:
    name = properties["ClusterName"]
    record = eks._clusters.get(name)
    if record is None:
        raise KubernetesRejection(f"there is no EKS cluster {name}: make the resource depend on the cluster")
    return Cluster(name=name, kubernetes_version=record["version"])


class ManifestHandler:
    """A list of objects, as ``kubectl create``, ``apply --prune`` and ``delete`` would treat it.

    Parameters
    ----------
    backend
        The cluster.
    """

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend

    def create(self, stack: str, logical_id: str, properties: Properties) -> tuple[str, Attributes]:
        """Create the objects; without ``Overwrite`` each must be new."""
        self._apply(properties, must_be_new=not _is_true(properties.get("Overwrite", False)))
        return _physical_id(stack, logical_id), {}

    def update(
        self, stack: str, logical_id: str, physical_id: str, old: Properties, new: Properties
    ) -> tuple[str, Attributes]:
        """Apply the new objects and prune what carries the label and is no longer named."""
        self._apply(new, must_be_new=False)
        return physical_id, {}

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Remove the objects."""
        self._backend.delete_manifest(_cluster(properties), json.loads(properties["Manifest"]))

    def _apply(self, properties: Properties, *, must_be_new: bool) -> None:
        self._backend.apply_manifest(
            _cluster(properties),
            json.loads(properties["Manifest"]),
            must_be_new=must_be_new,
            prune_label=None if must_be_new else properties.get("PruneLabel"),
        )


class ChartHandler:
    """A Helm release, as ``helm upgrade --install`` and ``helm uninstall`` would treat it.

    Parameters
    ----------
    backend
        The cluster.
    """

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend

    def create(self, stack: str, logical_id: str, properties: Properties) -> tuple[str, Attributes]:
        """Install the release."""
        self._backend.install_chart(_cluster(properties), _release(properties))
        return _physical_id(stack, logical_id), {}

    def update(
        self, stack: str, logical_id: str, physical_id: str, old: Properties, new: Properties
    ) -> tuple[str, Attributes]:
        """Upgrade the release."""
        self._backend.install_chart(_cluster(new), _release(new))
        return physical_id, {}

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Uninstall the release."""
        namespace = properties.get("Namespace", "default")
        self._backend.uninstall_chart(_cluster(properties), namespace, properties["Release"])


class UnsupportedHandler:
    """Refuses a custom resource that needs a running cluster, rather than pretend."""

    def create(self, stack: str, logical_id: str, properties: Properties) -> tuple[str, Attributes]:
        """Refuse."""
        raise KubernetesRejection(f"{logical_id}: reading or patching live objects needs a running cluster")

    def update(
        self, stack: str, logical_id: str, physical_id: str, old: Properties, new: Properties
    ) -> tuple[str, Attributes]:
        """Refuse."""
        return self.create(stack, logical_id, new)

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Do nothing: none was ever created."""


def _release(properties: Properties) -> Release:
    return Release(
        name=properties["Release"],
        namespace=properties.get("Namespace", "default"),
        create_namespace=_is_true(properties.get("CreateNamespace", False)),
        chart=_chart(properties),
        values=json.loads(properties.get("Values", "{}")),
    )


def _chart(properties: Properties) -> ChartArchive | ChartReference:
    address = properties.get("ChartAssetURL")
    if address is None:
        return ChartReference(
            repository=properties.get("Repository", ""),
            chart=properties.get("Chart", ""),
            version=properties.get("Version", ""),
        )
    location = urlsplit(address)
    content = s3._get_object_data(location.netloc, location.path.removeprefix("/"))
    if content is None:
        raise KubernetesRejection(f"the chart asset {address} was not published")
    return ChartArchive(content=content)


def register_kubernetes(backend: ClusterBackend) -> None:
    """Hand CDK's Kubernetes resources to a backend.

    Parameters
    ----------
    backend
        The cluster.
    """
    register(MANIFEST_TYPE, ManifestHandler(backend))
    register(CHART_TYPE, ChartHandler(backend))
    for resource_type in UNSUPPORTED_TYPES:
        register(resource_type, UnsupportedHandler())
