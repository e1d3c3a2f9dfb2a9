"""On a real API server the capacity shift patches its own objects under its narrow role, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import boto3
import pytest
from capacity_shift.cell_reader import CellReader
from capacity_shift.cluster_numbers import KubernetesNumbers, quota_of
from capacity_shift.shift_changes import ShiftActuators, make

from inference_blueprints.operate.kubernetes import Kubectl
from inference_constructs.operations.eks_controlled_cluster import SHIFT_LISTS, shift_rules
from inference_decisions.capacity_shift.shift_view import ShiftSettings
from inference_local.control_plane.control_plane import ControlPlane
from operations.kubernetes_api import KubernetesApi
from operations.operations_errors import KubernetesError
from tests.runtime.capacity_shift.shift_platform import (
    NOW,
    PLATFORM,
    Script,
    Series,
    shift_configuration,
    shifted_workers,
)

_OWN, _OTHER = shifted_workers("own"), shifted_workers("other")
_ROLE = "capacity-shift-test"
_NAMESPACE = "models"


def _scaled_object(name: str) -> dict[str, Any]:
    prometheus = {"serverAddress": "http://127.0.0.1:1", "query": "load", "threshold": "1"}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {
            "scaleTargetRef": {"name": name},
            "minReplicaCount": 2,
            "maxReplicaCount": 10,
            "triggers": [{"type": "prometheus", "metadata": prometheus}],
        },
    }


def _objects() -> list[dict[str, Any]]:
    """What charts and the capacity stack create, the role of the shift, and an account with it."""
    quotas = [{"name": "cpu", "nominalQuota": "64"}, {"name": "nvidia.com/gpu", "nominalQuota": "2"}]
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"keda-hpa-{_OWN.name}", "namespace": _NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": _OWN.name},
            "minReplicas": 2,
            "maxReplicas": 10,
        },
    }
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "l40s"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": [each["name"] for each in quotas],
                    "flavors": [{"name": "l40s", "resources": quotas}],
                }
            ],
        },
    }
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        _scaled_object(_OWN.name),
        _scaled_object(_OTHER.name),
        autoscaler,
        queue,
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": _ROLE},
            "rules": shift_rules([_OWN.name], ["l40s"], shifts=True),
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _ROLE, "namespace": _NAMESPACE}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _ROLE},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": _ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": _ROLE, "namespace": _NAMESPACE}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": {"name": _ROLE, "namespace": _NAMESPACE},
            "rules": list(SHIFT_LISTS),
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": _ROLE, "namespace": _NAMESPACE},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": _ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": _ROLE, "namespace": _NAMESPACE}],
        },
    ]


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[KubernetesApi]:
    """The API server with the permissions of the shift."""
    kubectl = control_plane.kubectl
    objects = _objects()
    kubectl.apply(objects[:1])
    kubectl.apply(objects[1:])
    token = kubectl.run("create", "token", _ROLE, "--namespace", _NAMESPACE).strip()
    authority = control_plane.authority.certificate.read_text()
    yield KubernetesApi(control_plane.address, lambda: token, authority=authority)
    kubectl.run("delete", "namespace", _NAMESPACE, "--wait=false")
    kubectl.run("delete", "clusterqueue", "l40s", "--wait=false")
    kubectl.run("delete", "clusterrole,clusterrolebinding", _ROLE)


def test_floors_and_quotas_are_patched_under_the_narrow_role(
    api: KubernetesApi, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    configuration, script = shift_configuration("shift", _OWN), Script()
    numbers = KubernetesNumbers(api)
    reader = CellReader(PLATFORM, configuration, numbers, Series({_OWN.release: 20.0}), None)
    actuators = ShiftActuators(configuration, numbers, None)
    live = reader.read(NOW)
    assert live.unread == {}
    decision = script.decide({}, live.view, None, ShiftSettings(action="shift"), NOW)
    done, failed = make(actuators.changes(decision, live), may_lend=True)
    assert (len(done), failed) == (2, [])
    mine = ("--namespace", _NAMESPACE, "--field-selector", f"metadata.name={_OWN.name}")
    (scaled,) = kubectl.get("scaledobject", *mine)
    assert scaled["spec"]["minReplicaCount"] == 6
    (queue,) = kubectl.get("clusterqueue", "--field-selector", "metadata.name=l40s")
    assert quota_of(configuration.queues[0], queue) == 8
    cpu = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert cpu == {"name": "cpu", "nominalQuota": "64"}, "other quotas stay"
    assert make(actuators.changes(decision, reader.read(NOW)), may_lend=True) == ([], [])
    # The first view is old now: its version is not that of the live queue.
    script.accelerators = 5
    stale = actuators.changes(script.decide({}, live.view, None, ShiftSettings(action="shift"), NOW), live)
    _, failed = make([each for each in stale if "quota" in each.what], may_lend=True)
    assert len(failed) == 1
    assert "409" in failed[0]


_KEDA = f"/apis/keda.sh/v1alpha1/namespaces/{_NAMESPACE}/scaledobjects"
_HPA = f"/apis/autoscaling/v2/namespaces/{_NAMESPACE}/horizontalpodautoscalers/keda-hpa-{_OWN.name}"
_FORBIDDEN: dict[str, Callable[[KubernetesApi], object]] = {
    "patch another ScaledObject": lambda api: api.patch(f"{_KEDA}/{_OTHER.name}", {"spec": {}}),
    "delete its ScaledObject": lambda api: api.delete(f"{_KEDA}/{_OWN.name}", uid="none"),
    "list ScaledObjects elsewhere": lambda api: [*api.list("/apis/keda.sh/v1alpha1/scaledobjects")],
    "patch an autoscaler": lambda api: api.patch(_HPA, {"spec": {}}),
    "delete a queue": lambda api: api.delete("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/l40s", uid="none"),
    "list nodes": lambda api: [*api.list("/api/v1/nodes")],
    "list secrets": lambda api: [*api.list(f"/api/v1/namespaces/{_NAMESPACE}/secrets")],
    "list pods": lambda api: [*api.list(f"/api/v1/namespaces/{_NAMESPACE}/pods")],
}


@pytest.mark.parametrize("act", _FORBIDDEN)
def test_everything_else_is_forbidden(api: KubernetesApi, act: str) -> None:
    with pytest.raises(KubernetesError) as refused:
        _FORBIDDEN[act](api)
    assert refused.value.status == HTTPStatus.FORBIDDEN
