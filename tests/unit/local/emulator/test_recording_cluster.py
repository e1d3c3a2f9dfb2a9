"""A cluster that runs nothing must still refuse what a real one would."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints import tools
from inference_local.emulator.kubernetes import (
    ChartArchive,
    ChartReference,
    EmulatedCluster,
    KubernetesRejection,
    ReleaseInstallation,
)
from inference_local.emulator.recording_cluster import RecordingCluster
from inference_local.emulator.records import EmulatorRecords, recorded_releases

CLUSTER = EmulatedCluster(name="blue", kubernetes_version="1.35")
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: {{ .Release.Namespace }}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: {{ .Values.image | quote }} }]}
"""


@pytest.fixture
def backend(tmp_path: Path) -> RecordingCluster:
    return RecordingCluster(tmp_path, tools.helm())


def _files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder / "blue")) for file in folder.rglob("*.yaml")}


def _config_map(name: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _release(**templates: str) -> ReleaseInstallation:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(
            "Chart.yaml", yaml.safe_dump({"apiVersion": "v2", "name": "web", "version": "1.0.0"})
        )
        for name, text in templates.items():
            archive.writestr(f"templates/{name}.yaml", text)
    return ReleaseInstallation(
        name="web",
        namespace="shop",
        create_namespace=True,
        chart=ChartArchive(content.getvalue()),
        values={"image": "web:1"},
    )


def _apply(
    backend: RecordingCluster, *objects: dict[str, Any], new: bool = True, prune: str | None = None
) -> None:
    backend.apply_manifest(CLUSTER, objects, must_be_new=new, prune_label=prune)


def test_an_object_in_a_namespace_that_nobody_made_is_refused(backend: RecordingCluster) -> None:
    with pytest.raises(KubernetesRejection, match="there is no namespace shop"):
        _apply(backend, _config_map("a", "shop"))


def test_a_namespace_of_the_same_manifest_counts(backend: RecordingCluster, tmp_path: Path) -> None:
    _apply(backend, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
           _config_map("a", "shop"))  # fmt: skip
    assert _files(tmp_path) == {"_cluster/namespace-shop.yaml", "shop/configmap-a.yaml"}


def test_every_problem_of_a_manifest_is_told_at_once(backend: RecordingCluster) -> None:
    bad = {**_config_map("one"), "dataa": {}}
    worse = {"apiVersion": "v1", "kind": "ConfigMapp", "metadata": {"name": "two"}}
    with pytest.raises(KubernetesRejection, match=r"ConfigMap one: .*dataa.*; ConfigMapp two: no schema"):
        _apply(backend, bad, worse)


def test_only_labelled_objects_of_prunable_kinds_are_pruned(
    backend: RecordingCluster, tmp_path: Path
) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
            "metadata": {"name": "reader", "labels": {"prune": ""}}}  # fmt: skip
    _apply(backend, _config_map("stays", prune=""), _config_map("goes", prune=""), role)
    _apply(backend, _config_map("foreign"))
    _apply(backend, _config_map("stays", prune=""), new=False, prune="prune")
    assert _files(tmp_path) == {
        "_cluster/clusterrole.rbac.authorization.k8s.io-reader.yaml",
        "default/configmap-foreign.yaml",
        "default/configmap-stays.yaml",
    }


def test_an_upgrade_removes_what_the_chart_no_longer_renders(
    backend: RecordingCluster, tmp_path: Path
) -> None:
    extra = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
    backend.install_chart(CLUSTER, _release(deployment=DEPLOYMENT, service=extra))
    assert "shop/service-web.yaml" in _files(tmp_path)
    backend.install_chart(CLUSTER, _release(deployment=DEPLOYMENT))
    assert _files(tmp_path) == {
        "_cluster/namespace-shop.yaml",
        "_releases/shop.web.yaml",
        "shop/deployment.apps-web.yaml",
    }
    backend.uninstall_chart(CLUSTER, "shop", "web")
    assert _files(tmp_path) == {"_cluster/namespace-shop.yaml"}


def test_nothing_of_a_deleted_cluster_stays(backend: RecordingCluster, tmp_path: Path) -> None:
    backend.install_chart(CLUSTER, _release(deployment=DEPLOYMENT))
    backend.uninstall_chart(CLUSTER, "shop", "web")
    backend.forget("blue")
    assert list(tmp_path.iterdir()) == []


def test_an_object_without_a_namespace_is_in_that_of_its_release(
    backend: RecordingCluster, tmp_path: Path
) -> None:
    backend.install_chart(CLUSTER, _release(map="{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"))
    _apply(backend, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})
    assert {"shop/configmap-a.yaml", "default/configmap-b.yaml"} < _files(tmp_path)


def test_a_chart_that_renders_an_invalid_object_is_refused(backend: RecordingCluster, tmp_path: Path) -> None:
    with pytest.raises(KubernetesRejection, match=r"Deployment web: .*'imagee' was unexpected"):
        backend.install_chart(CLUSTER, _release(deployment=DEPLOYMENT.replace("image:", "imagee:")))
    assert "_releases/shop.web.yaml" not in _files(tmp_path)


def test_a_chart_may_not_take_over_an_object_of_somebody_else(backend: RecordingCluster) -> None:
    deployment = yaml.safe_load(
        DEPLOYMENT.replace("{{ .Release.Namespace }}", "shop").replace("{{ .Values.image | quote }}", "web:1")
    )
    _apply(backend, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, deployment)
    with pytest.raises(KubernetesRejection, match="belongs to something else"):
        backend.install_chart(CLUSTER, _release(deployment=DEPLOYMENT))


def test_a_chart_of_a_registry_is_recorded_and_says_that_it_was_not_rendered(
    backend: RecordingCluster, tmp_path: Path
) -> None:
    chart = ChartReference("oci://example.com/charts/karpenter", "karpenter", "1.15.1")
    release = ReleaseInstallation(
        name="karpenter", namespace="kube-system", create_namespace=False, chart=chart, values={"replicas": 2}
    )
    backend.install_chart(CLUSTER, release)
    (recorded,) = recorded_releases(tmp_path)
    assert (recorded.name, recorded.version, recorded.rendered) == ("karpenter", "1.15.1", False)
    assert recorded.values == {"replicas": 2}


def test_a_field_that_cannot_change_is_refused_as_by_an_api_server(backend: RecordingCluster) -> None:
    """A chart of a new release that gives its Deployment another selector cannot be upgraded to."""
    backend.install_chart(CLUSTER, _release(web=DEPLOYMENT))
    backend.install_chart(
        CLUSTER, _release(web=DEPLOYMENT.replace("containers: [{", "containers: [{tty: true, "))
    )
    other = DEPLOYMENT.replace("app: web", "app: shop")
    with pytest.raises(KubernetesRejection, match=r'Deployment "web" is invalid: spec\.selector.*immutable'):
        backend.install_chart(CLUSTER, _release(web=other))
    hook = other.replace("metadata: {name: web,", "metadata: {name: web, annotations: {helm.sh/hook: x},")
    backend.install_chart(CLUSTER, _release(web=hook))


def test_an_object_may_go_while_others_are_read(tmp_path: Path) -> None:
    """Stacks are deployed beside each other. A list that read what another removed failed a deployment."""
    records = EmulatorRecords(tmp_path / "blue")
    for name in ("a", "b", "c"):
        records.write(records.path_of(_config_map(name), "default"), _config_map(name))
    seen = []
    for _, found in records.objects():
        seen.append(found["metadata"]["name"])
        records.remove(records.path_of(_config_map("b"), "default"))
    assert seen == ["a", "c"]
    assert len(_files(tmp_path)) == 2
