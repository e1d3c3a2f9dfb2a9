"""Passes CDK's custom resources for Kubernetes to a `ClusterBackend` instead of the kubectl Lambda.

The properties are those that CDK's handler reads (aws-cdk-lib, custom-resource-handlers, aws-eks
kubectl-handler). Numbers and booleans may be strings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from ministack.services import eks, s3

from inference_local.emulator.kubernetes import (
    ChartArchive,
    ChartReference,
    ClusterBackend,
    EmulatedCluster,
    KubernetesRejection,
    ReleaseInstallation,
)
from inference_local.emulator.resource_handlers.registry import (
    Made,
    Properties,
    ResourceRequest,
    register,
)

MANIFEST_TYPE = "Custom::AWSCDK-EKS-KubernetesResource"
CHART_TYPE = "Custom::AWSCDK-EKS-HelmChart"
UNSUPPORTED_TYPES = ("Custom::AWSCDK-EKS-KubernetesObjectValue", "Custom::AWSCDK-EKS-KubernetesPatch")


def _physical_id(request: ResourceRequest) -> str:
    return f"{request.logical_id}-{hashlib.sha256(request.stack.encode()).hexdigest()[:12]}"


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _cluster(properties: Properties) -> EmulatedCluster:
    name = properties["ClusterName"]
    record = eks._clusters.get(name)
    if record is None:
        raise KubernetesRejection(f"there is no EKS cluster {name}: make the resource depend on the cluster")
    return EmulatedCluster(name=name, kubernetes_version=record["version"])


class ManifestHandler:
    """Handles a list of objects as ``kubectl create``, ``apply --prune`` and ``delete`` do."""

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend

    def create(self, request: ResourceRequest) -> Made:
        """Create the objects. Without ``Overwrite``, each must be new."""
        properties = request.properties
        self._backend.apply_manifest(
            _cluster(properties),
            json.loads(properties["Manifest"]),
            must_be_new=not _is_true(properties.get("Overwrite", False)),
            prune_label=None,
        )
        return _physical_id(request), {}

    def update(self, request: ResourceRequest) -> Made:
        """Apply the new objects and remove objects with the label that are no longer listed."""
        properties = request.properties
        self._backend.apply_manifest(
            _cluster(properties),
            json.loads(properties["Manifest"]),
            must_be_new=False,
            prune_label=properties.get("PruneLabel"),
        )
        return _physical_id(request), {}

    def delete(self, request: ResourceRequest) -> None:
        """Remove the objects."""
        properties = request.properties
        self._backend.delete_manifest(_cluster(properties), json.loads(properties["Manifest"]))


class ChartHandler:
    """Handles a Helm release as ``helm upgrade --install`` and ``helm uninstall`` do."""

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend

    def create(self, request: ResourceRequest) -> Made:
        """Install the release, or upgrade it."""
        self._backend.install_chart(_cluster(request.properties), _release(request.properties))
        return _physical_id(request), {}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Uninstall the release."""
        properties = request.properties
        namespace = properties.get("Namespace", "default")
        self._backend.uninstall_chart(_cluster(properties), namespace, properties["Release"])


class UnsupportedHandler:
    """Refuses a custom resource that needs a running cluster."""

    def create(self, request: ResourceRequest) -> Made:
        """Refuse."""
        raise KubernetesRejection(
            f"{request.logical_id}: reading or patching live objects needs a running cluster"
        )

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Do nothing, because none was created."""


def _release(properties: Properties) -> ReleaseInstallation:
    return ReleaseInstallation(
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


def forget_deleted_clusters(forget: Callable[[str], None]) -> None:
    """Call a function with the name of each EKS cluster that is deleted: its objects are gone with it."""
    delete = eks._delete_cluster

    def delete_and_forget(name: str) -> Any:
        answer = delete(name)
        if name not in eks._clusters:
            forget(name)
        return answer

    eks._delete_cluster = delete_and_forget


def register_kubernetes(backend: ClusterBackend) -> None:
    """Register a backend for CDK's Kubernetes resources."""
    register(MANIFEST_TYPE, ManifestHandler(backend))
    register(CHART_TYPE, ChartHandler(backend))
    for resource_type in UNSUPPORTED_TYPES:
        register(resource_type, UnsupportedHandler())
