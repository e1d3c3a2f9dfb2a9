"""On a real API server, real Karpenter replaces the node of a broken GPU, as GPU health's handlers ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from gpu_health.health_platform import health_platform
from inference_blueprints.operate.kubernetes import Kubectl
from inference_catalog.gpu_faults import gpu_faults_file
from inference_contracts.health_names import CORDON_ANNOTATION
from inference_contracts.operations_names import HEALTH_GROUP
from inference_local.control_plane.control_plane import ControlPlane
from operations.kubernetes_api import KubernetesApi
from operations.operations_errors import KubernetesError
from tests.cluster.group_tokens import GroupTokens
from tests.cluster.health_cell import HealthCell, health_cell
from tests.cluster.karpenter import karpenter, named, pools_and_classes
from tests.cluster.objects import KubernetesObject, component_deployments, manifests, own_objects
from tests.cluster.simulated_ec2 import SimulatedEc2, simulated_ec2
from tests.cluster.state import has, pods, ready_names, ready_pods
from tests.templates.support import Templates

pytestmark = pytest.mark.timeout(600)

_NAMESPACE, _POOL, _WORKERS = "inference", "l40s", 3
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@pytest.fixture(scope="module")
def platform(synthesise: Callable[[str], Templates]) -> Templates:
    """The blueprint whose broken nodes GPU health replaces."""
    return synthesise("capacity-and-health")


@pytest.fixture(scope="module")
def permissions(platform: Templates) -> list[KubernetesObject]:
    """The roles of GPU health and their bindings, as the stack applies them."""
    return [each for each in manifests(platform) if each["metadata"]["name"] == HEALTH_GROUP]


@pytest.fixture(scope="module")
def budget(platform: Templates) -> KubernetesObject:
    """The PodDisruptionBudget of the workers."""
    return next(
        each
        for each in own_objects(platform)
        if each["kind"] == "PodDisruptionBudget" and each["metadata"]["name"].endswith("-worker")
    )


@pytest.fixture(scope="module")
def ec2(
    control_plane: ControlPlane,
    platform: Templates,
    permissions: list[KubernetesObject],
    budget: KubernetesObject,
) -> Iterator[SimulatedEc2]:
    """What Karpenter takes for AWS, while each worker of the model runs on a node that Karpenter made."""
    kubectl = control_plane.kubectl
    assert {each["kind"] for each in permissions} == {
        f"{scope}Role{part}" for scope in ("", "Cluster") for part in ("", "Binding")
    }
    worker = next(
        each
        for each in component_deployments(own_objects(platform))
        if each["metadata"]["name"] == budget["metadata"]["name"]
    )
    worker["spec"]["replicas"] = _WORKERS
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    # Karpenter's test program gives every node the disk of an instance without local disks.
    container["resources"]["requests"].pop("ephemeral-storage", None)
    with simulated_ec2() as simulated, karpenter(control_plane, simulated, BATCH_MAX_DURATION="2s"):
        objects = [
            each for each in pools_and_classes(platform, simulated) if each["metadata"]["name"] == _POOL
        ]
        assert set(named(objects, "NodePool")) == set(named(objects, "EC2NodeClass")) == {_POOL}
        kubectl.apply([*objects, *permissions])
        kubectl.wait_until(lambda: _POOL in ready_names(kubectl, "nodepools"), "the NodePool is ready")
        kubectl.apply([worker, budget])
        kubectl.wait_until(lambda: ready_pods(kubectl, _NAMESPACE) == _WORKERS, "every worker runs")
        yield simulated
        kubectl.run("delete", "deployments,poddisruptionbudgets", "--all", "--namespace", _NAMESPACE)
        kubectl.run("delete", "nodepools", _POOL, "--wait=true", "--timeout=240s")
        kubectl.run("delete", "ec2nodeclasses", _POOL, "--wait=true", "--timeout=240s")
        for each in permissions:
            place = ["--namespace", each["metadata"].get("namespace", "default")]
            kubectl.run("delete", each["kind"], each["metadata"]["name"], *place)


@pytest.fixture
def cell(
    control_plane: ControlPlane,
    group_tokens: GroupTokens,
    ec2: SimulatedEc2,
    platform: Templates,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[HealthCell]:
    """The functions, and open nodes with a worker each."""
    kubectl = control_plane.kubectl
    token = group_tokens.of(HEALTH_GROUP)
    with health_cell(control_plane, token, ec2, platform, monkeypatch) as made:
        kubectl.wait_until(lambda: len(_workers(kubectl)) == _WORKERS, "every node has its worker")
        yield made
    for name in _closed(kubectl):
        kubectl.run("uncordon", name)
        kubectl.run("annotate", "node", name, f"{CORDON_ANNOTATION}-")


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane, group_tokens: GroupTokens, ec2: SimulatedEc2) -> KubernetesApi:
    """The API server with the permissions of GPU health, which are there once `ec2` is."""
    token, authority = group_tokens.of(HEALTH_GROUP), control_plane.authority.certificate.read_text()
    found = KubernetesApi(control_plane.address, lambda: token, authority=authority)
    control_plane.kubectl.wait_until(lambda: not _is_refused(lambda: [*found.list("/api/v1/nodes")]), "roles")
    return found


def test_a_node_is_replaced_within_every_limit(
    cell: HealthCell, kubectl: Kubectl, budget: KubernetesObject
) -> None:
    """A disruption budget, a freeze, another replacement and the hourly cap hold it back in turn."""
    cell.settings(replacementsPerHour=1, maxUnhealthyPercent=70)
    before, workers = _claims(kubectl), _workers(kubectl)
    first, second, third = sorted(workers)
    _allow(kubectl, budget, 0)

    cell.hardware(first)
    cell.hardware(second)
    assert cell.at(first)[0] == "draining"
    assert cell.at(second) == ("confirmed", "in_flight")
    cell.minute()
    assert (_closed(kubectl), _workers(kubectl), _claims(kubectl)) == ([first], workers, before)

    cell.freeze("health")
    _allow(kubectl, budget, 1)
    cell.minute()
    assert cell.at(first) == ("draining", "frozen")
    assert (_closed(kubectl), _workers(kubectl), _claims(kubectl)) == ([first], workers, before)

    cell.freeze("none")
    _finish(cell, kubectl, first)
    assert cell.states(first) == [
        *("suspected", "confirmed", "cordoned", "draining", "replacing", "verifying", "done")
    ]
    # Cases have no order: in the minute that ended the first, the second may have been looked at before.
    cell.minute()
    assert cell.at(second) == ("confirmed", "hourly_cap")
    assert cell.places() == {_POOL: []}
    assert _closed(kubectl) == []
    _one_was_replaced(cell, kubectl, first, before)
    kept = {second, third}
    assert {node: name for node, name in _workers(kubectl).items() if node in kept} == {
        node: name for node, name in workers.items() if node in kept
    }
    assert cell.messages == []


def test_a_function_that_dies_after_each_change_replaces_one_node_once(
    cell: HealthCell, kubectl: Kubectl
) -> None:
    before, node = _claims(kubectl), min(_workers(kubectl))
    cell.deaths.active = True
    for _ in range(40):
        if cell.survives(lambda: cell.hardware(node)):
            break
    # Meanwhile no other node of the pool is touched.
    assert set(_closed(kubectl)) <= {node}
    _finish(cell, kubectl, node)
    _one_was_replaced(cell, kubectl, node, before)
    assert (_closed(kubectl), cell.places()) == ([], {_POOL: []})
    acts = [each.partition(" ")[0] for each in cell.deaths.after]
    assert [acts.count(each) for each in ("PATCH", "POST", "DELETE")] == [1, 1, 1]
    written = [each for each in cell.deaths.after if each.startswith("case")]
    # It died after the eviction, before it could write that it drains: the next one found the node empty.
    assert written == [
        f"case {state}" for state in ("suspected", "confirmed", "cordoned", "replacing", "verifying", "done")
    ]


def test_a_node_whose_kernel_is_broken_is_replaced(
    cell: HealthCell, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if nobody repairs what the monitoring agent writes into the status of a node."""
    before, node = _claims(kubectl), min(_workers(kubectl))
    faults = gpu_faults_file().read_text("utf-8").replace('"seconds": 1800', '"seconds": 1')
    monkeypatch.setattr("gpu_health.health_platform._faults", lambda: faults)
    health_platform.cache_clear()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "KernelReady", "status": "False", "reason": "ForkFailedOutOfPIDs"}
    change = {"status": {"conditions": [{**condition, "message": "", "lastTransitionTime": now}]}}
    kubectl.run("patch", "node", node, "--subresource=status", "--type=strategic", "-p", json.dumps(change))
    cell.minute()
    assert cell.at(node)[0] != ""
    _finish(cell, kubectl, node)
    _one_was_replaced(cell, kubectl, node, before)


@pytest.mark.parametrize("hold", ["observe", "frozen"])
def test_what_only_observes_or_is_frozen_records_and_touches_nothing(
    cell: HealthCell, kubectl: Kubectl, hold: str
) -> None:
    before, workers = _claims(kubectl), _workers(kubectl)
    if hold == "observe":
        cell.settings(action="observe")
    else:
        cell.freeze("all")
    cell.hardware(min(workers))
    cell.minute()
    assert cell.at(min(workers)) == ("confirmed", hold)
    assert (_closed(kubectl), _workers(kubectl), _claims(kubectl)) == ([], workers, before)


def test_a_permission_that_the_role_lacks_is_refused_and_people_are_told(
    cell: HealthCell, kubectl: Kubectl, permissions: list[KubernetesObject]
) -> None:
    node, before = min(_workers(kubectl)), _claims(kubectl)
    (role,) = (each for each in permissions if each["kind"] == "ClusterRole")
    reading = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"]} for rule in role["rules"]
    ]
    kubectl.apply([{**role, "rules": reading}])
    try:
        kubectl.wait_until(lambda: _is_refused(lambda: _close(cell.api, node)), "the role is narrower")
        cell.hardware(node)
        for _ in range(4):
            cell.minute()
        assert (cell.at(node)[0], len(cell.messages)) == ("gave_up", 1)
        assert "403" in cell.messages[0]
        assert (_closed(kubectl), _claims(kubectl), cell.places()) == ([], before, {_POOL: []})
    finally:
        kubectl.apply([role])
        kubectl.wait_until(lambda: not _is_refused(lambda: _close(cell.api, node)), "the role is whole")


def _close(api: KubernetesApi, node: str) -> object:
    """Patch nothing of a node."""
    return api.patch(f"/api/v1/nodes/{node}", {})


_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": []}}
_EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}}
_FORBIDDEN: dict[str, Callable[[KubernetesApi], object]] = {
    "delete a node": lambda api: api.delete("/api/v1/nodes/x", uid="x"),
    "create a node": lambda api: api.post("/api/v1/nodes", {}),
    "patch the status of a node": lambda api: api.patch("/api/v1/nodes/x/status", {}),
    "delete a pod": lambda api: api.delete(f"/api/v1/namespaces/{_NAMESPACE}/pods/x", uid="x"),
    "create a pod": lambda api: api.post(f"/api/v1/namespaces/{_NAMESPACE}/pods", _POD),
    "patch a pod": lambda api: api.patch(f"/api/v1/namespaces/{_NAMESPACE}/pods/x", {}),
    "evict elsewhere": lambda api: api.post("/api/v1/namespaces/kube-system/pods/x/eviction", _EVICTION),
    "patch a NodeClaim": lambda api: api.patch(f"{_CLAIMS}/x", {}),
    "create a NodeClaim": lambda api: api.post(_CLAIMS, {}),
    "list NodePools": lambda api: [*api.list("/apis/karpenter.sh/v1/nodepools")],
    "list budgets": lambda api: [*api.list("/apis/policy/v1/poddisruptionbudgets")],
    "list secrets": lambda api: [*api.list("/api/v1/secrets")],
    "read logs": lambda api: api.get(f"/api/v1/namespaces/{_NAMESPACE}/pods/x/log"),
    "run commands": lambda api: api.post(f"/api/v1/namespaces/{_NAMESPACE}/pods/x/exec", {}),
    "widen its role": lambda api: api.patch(
        f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{HEALTH_GROUP}", {"rules": []}
    ),
}


@pytest.mark.parametrize("act", _FORBIDDEN)
def test_everything_else_is_forbidden(api: KubernetesApi, act: str) -> None:
    assert _is_refused(lambda: _FORBIDDEN[act](api))


def _is_refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except KubernetesError as error:
        return error.status == HTTPStatus.FORBIDDEN
    return False


def _allow(kubectl: Kubectl, budget: KubernetesObject, disruptions: int) -> None:
    """Let the budget of the workers allow so many disruptions."""
    name = budget["metadata"]["name"]
    kubectl.apply([{**budget, "spec": {**budget["spec"], "maxUnavailable": disruptions}}])

    def counted() -> bool:
        found = kubectl.get("poddisruptionbudgets", "--namespace", _NAMESPACE)
        (status,) = (each["status"] for each in found if each["metadata"]["name"] == name)
        return bool(status["disruptionsAllowed"] == disruptions)

    kubectl.wait_until(counted, "the budget is counted")


def _finish(cell: HealthCell, kubectl: Kubectl, node: str) -> None:
    """Let minutes pass until the case of a node is done."""

    def done() -> bool:
        cell.survives(cell.minute)
        state, reason = cell.at(node)
        assert state not in ("gave_up", "refused", "cleared"), reason
        return state == "done"

    kubectl.wait_until(done, f"{node} is replaced")


def _one_was_replaced(cell: HealthCell, kubectl: Kubectl, node: str, before: dict[str, str]) -> None:
    """Check that of all NodeClaims that of a node is gone, another one came, and its node has a worker."""
    after, case = _claims(kubectl), cell.case(node)
    assert case is not None
    assert [claim for claim in before if claim not in after] == [case.owner_name]
    assert before[case.owner_name] == node
    assert [name for claim, name in after.items() if claim not in before] == [case.replacement]
    workers = _workers(kubectl)
    assert len(workers) == _WORKERS
    assert case.replacement in workers


def _claims(kubectl: Kubectl) -> dict[str, str]:
    """Return the nodes of NodeClaims that are not about to go, by name."""
    return {
        each["metadata"]["name"]: each["status"].get("nodeName", "")
        for each in kubectl.get("nodeclaims")
        if "deletionTimestamp" not in each["metadata"]
    }


def _workers(kubectl: Kubectl) -> dict[str, str]:
    """Return the ready worker of each node."""
    return {
        each["spec"]["nodeName"]: each["metadata"]["name"]
        for each in pods(kubectl, _NAMESPACE)
        if has(each, "Ready")
    }


def _closed(kubectl: Kubectl) -> list[str]:
    nodes: list[dict[str, Any]] = kubectl.get("nodes")
    return [each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable")]
