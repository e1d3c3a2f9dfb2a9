"""A cluster that validates and records objects, and runs nothing."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference_catalog.cloudformation_types import value_at
from inference_local.emulator.kubernetes import (
    ChartArchive,
    ChartReference,
    EmulatedCluster,
    KubernetesObject,
    KubernetesRejection,
    ReleaseInstallation,
    render,
)
from inference_local.emulator.records import EmulatorRecords, RecordedRelease
from inference_local.manifests import validate_manifest

_FIRST_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
# Kinds without a namespace (`kubectl api-resources`; the custom resource definitions of Karpenter and Kueue).
_CLUSTER_KINDS = frozenset(
    {
        "APIService",
        "AdmissionCheck",
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "Cohort",
        "CustomResourceDefinition",
        "DeviceClass",
        "EC2NodeClass",
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NodePool",
        "PersistentVolume",
        "PriorityClass",
        "ResourceFlavor",
        "RuntimeClass",
        "StorageClass",
        "Topology",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "WorkloadPriorityClass",
    }
)
# Kinds that `kubectl apply --prune` removes by default (kubectl, pkg/util/prune). No custom resources.
_PRUNED_KINDS = frozenset(
    {
        "ConfigMap",
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Endpoints",
        "Ingress",
        "Job",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "ReplicaSet",
        "ReplicationController",
        "Secret",
        "Service",
        "StatefulSet",
    }
)
# Fields that an API server does not let change: ``Validate…Update`` of each kind in kubernetes/kubernetes,
# pkg/apis/{apps,batch,core,rbac}.
_IMMUTABLE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "ClusterRoleBinding": ("roleRef",),
    "DaemonSet": ("spec.selector",),
    "Deployment": ("spec.selector",),
    "Job": ("spec.completionMode", "spec.selector", "spec.template"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.storageClassName", "spec.volumeMode"),
    "PriorityClass": ("preemptionPolicy", "value"),
    "RoleBinding": ("roleRef",),
    "Service": ("spec.clusterIP",),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    "StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}


def _immutable_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what an API server says of each changed field that cannot change."""
    name = f'{new["kind"]} "{new["metadata"]["name"]}" is invalid'
    return [
        f"{name}: {path}: field is immutable"
        for path in _IMMUTABLE_FIELDS.get(new["kind"], ())
        if value_at(old, path) != value_at(new, path)
    ]


class RecordingCluster:
    """Validates strictly, renders our own charts with real helm, and records YAML files.

    Checks that need a running cluster are left out: admission, whether custom resource definitions are
    installed, and whether pods start.

    folder: Folder of the recorded clusters, see `records`.
    """

    def __init__(self, folder: Path, helm: Path) -> None:
        self._folder = folder
        self._helm = helm

    def apply_manifest(
        self,
        cluster: EmulatedCluster,
        objects: Sequence[KubernetesObject],
        *,
        must_be_new: bool,
        prune_label: str | None,
    ) -> None:
        """Check all objects, then record them."""
        records = self._records(cluster)
        paths = self._checked(cluster, objects, default_namespace="default")
        existing = [path for path in paths if records.has(path)]
        if must_be_new and existing:
            raise KubernetesRejection(
                f"already exists: {', '.join(existing)}; an object has exactly one owner"
            )
        for path, kubernetes_object in paths.items():
            records.write(path, kubernetes_object)
        if prune_label is not None:
            self._prune(records, prune_label, keep=set(paths))

    def delete_manifest(self, cluster: EmulatedCluster, objects: Sequence[KubernetesObject]) -> None:
        """Remove objects."""
        records = self._records(cluster)
        for kubernetes_object in objects:
            records.remove(records.path_of(kubernetes_object, _namespace(kubernetes_object, "default")))

    def install_chart(self, cluster: EmulatedCluster, release: ReleaseInstallation) -> None:
        """Render and record a chart of ours. Record only the values of a third-party chart."""
        if isinstance(release.chart, ChartReference):
            self._record_reference(cluster, release, release.chart)
        else:
            self._record_archive(cluster, release, release.chart)

    def uninstall_chart(self, cluster: EmulatedCluster, namespace: str, release: str) -> None:
        """Remove a release and its objects."""
        records = self._records(cluster)
        recorded = records.release(namespace, release)
        if recorded is not None:
            for path in recorded.objects:
                records.remove(path)
            records.remove_release(namespace, release)

    def forget(self, cluster: str) -> None:
        """Remove everything that is recorded of a deleted cluster, also namespaces that charts made."""
        shutil.rmtree(self._folder / cluster, ignore_errors=True)

    def _records(self, cluster: EmulatedCluster) -> EmulatorRecords:
        return EmulatorRecords(self._folder / cluster.name)

    def _record_reference(
        self, cluster: EmulatedCluster, release: ReleaseInstallation, chart: ChartReference
    ) -> None:
        self._make_namespace(cluster, release)
        self._records(cluster).write_release(
            RecordedRelease(
                name=release.name,
                namespace=release.namespace,
                chart=" ".join(part for part in (chart.repository, chart.chart) if part),
                version=chart.version,
                rendered=False,
                values=release.values,
            )
        )

    def _record_archive(
        self, cluster: EmulatedCluster, release: ReleaseInstallation, chart: ChartArchive
    ) -> None:
        with tempfile.TemporaryDirectory() as directory:
            with zipfile.ZipFile(io.BytesIO(chart.content)) as archive:
                archive.extractall(directory)
            objects = render(
                self._helm,
                Path(directory),
                release=release.name,
                namespace=release.namespace,
                values=release.values,
                kubernetes_version=cluster.kubernetes_version,
            )
        self._make_namespace(cluster, release)
        records = self._records(cluster)
        paths = self._checked(cluster, objects, default_namespace=release.namespace)
        previous = records.release(release.namespace, release.name)
        owned = set(previous.objects) if previous else set()
        foreign = [path for path in paths if records.has(path) and path not in owned]
        if foreign:
            raise KubernetesRejection(
                f"release {release.name}: {', '.join(foreign)} already exists and belongs to something else"
            )
        for path in owned - set(paths):
            records.remove(path)
        for path, kubernetes_object in paths.items():
            records.write(path, kubernetes_object)
        records.write_release(
            RecordedRelease(
                name=release.name,
                namespace=release.namespace,
                chart="asset",
                version="",
                rendered=True,
                values=release.values,
                objects=tuple(paths),
            )
        )

    def _make_namespace(self, cluster: EmulatedCluster, release: ReleaseInstallation) -> None:
        records = self._records(cluster)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}}
        path = records.path_of(namespace, None)
        if release.create_namespace and release.namespace not in _FIRST_NAMESPACES and not records.has(path):
            records.write(path, namespace)

    def _checked(
        self, cluster: EmulatedCluster, objects: Sequence[KubernetesObject], *, default_namespace: str
    ) -> dict[str, KubernetesObject]:
        """Validate objects and their namespaces, report all errors, and return the objects by path."""
        records = self._records(cluster)
        problems = [
            problem
            for kubernetes_object in objects
            for problem in validate_manifest(kubernetes_object, cluster.kubernetes_version)
        ]
        if problems:
            raise KubernetesRejection("; ".join(problems))
        paths: dict[str, KubernetesObject] = {}
        for kubernetes_object in objects:
            namespace = _namespace(kubernetes_object, default_namespace)
            path = records.path_of(kubernetes_object, namespace)
            if namespace is not None and not self._has_namespace(records, namespace, made_here=paths):
                problems.append(f"{path}: there is no namespace {namespace}")
            # Helm deletes the object of a hook before it creates it again.
            if records.has(path) and "helm.sh/hook" not in kubernetes_object["metadata"].get(
                "annotations", {}
            ):
                problems += _immutable_changes(records.read(path), kubernetes_object)
            paths[path] = kubernetes_object
        if problems:
            raise KubernetesRejection("; ".join(problems))
        return paths

    @staticmethod
    def _has_namespace(records: EmulatorRecords, namespace: str, *, made_here: Mapping[str, Any]) -> bool:
        path = records.path_of(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, None
        )
        return namespace in _FIRST_NAMESPACES or path in made_here or records.has(path)

    @staticmethod
    def _prune(records: EmulatorRecords, label: str, *, keep: set[str]) -> None:
        for path, kubernetes_object in list(records.objects()):
            labels = kubernetes_object["metadata"].get("labels") or {}
            if label in labels and kubernetes_object["kind"] in _PRUNED_KINDS and path not in keep:
                records.remove(path)


def _namespace(kubernetes_object: KubernetesObject, default: str) -> str | None:
    """Return the namespace of an object. None for kinds without namespaces."""
    if kubernetes_object["kind"] in _CLUSTER_KINDS:
        return None
    namespace: str = kubernetes_object["metadata"].get("namespace", default)
    return namespace
