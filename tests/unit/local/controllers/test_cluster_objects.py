"""The stand-in for the API server: what it shows of nodes and pods, and what requests change."""

from __future__ import annotations

from typing import Any

import pytest

from inference_contracts.health_names import CORDON_ANNOTATION
from inference_local.controllers.cluster_objects import ClusterObjects
from inference_local.controllers.run_clock import RunClock, kubernetes_time
from inference_local.controllers.worker_nodes import WorkerNodes
from tests.unit.local.controllers.nodes import READY_SINCE, nodes_of

CLOCK = RunClock(1000.0, 4.0)
NODE, CLAIM = "/api/v1/nodes/l40s-node-1", "/apis/karpenter.sh/v1/nodeclaims/claim-l40s-node-1"
SCALED = "/apis/keda.sh/v1alpha1/namespaces/inference/scaledobjects/chat-worker"


@pytest.fixture
def nodes() -> WorkerNodes:
    return nodes_of(2)[0]


@pytest.fixture
def objects(nodes: WorkerNodes) -> ClusterObjects:
    scaled = {"metadata": {"resourceVersion": "1"}, "spec": {"minReplicaCount": 2, "maxReplicaCount": 4}}
    queue = {"metadata": {"resourceVersion": "1"}, "spec": {"resourceGroups": []}}
    return ClusterObjects((nodes,), CLOCK, {"l40s": "g6e.2xlarge"}, {"chat-worker": scaled}, {"l40s": queue})


def get(objects: ClusterObjects, path: str, **query: str) -> Any:
    status, content = objects.answer("GET", path, query, None)
    assert status == 200, content
    return content


def test_pods_are_found_by_node_and_by_label(objects: ClusterObjects) -> None:
    assert len(get(objects, "/api/v1/pods")["items"]) == 2
    (pod,) = get(objects, "/api/v1/pods", fieldSelector="spec.nodeName=l40s-node-2")["items"]
    assert pod["spec"]["nodeName"] == "l40s-node-2"
    assert get(objects, "/api/v1/pods", labelSelector="inference-blueprints/release")["items"]
    assert not get(objects, "/api/v1/pods", labelSelector="another")["items"]


def test_times_are_those_of_the_faster_clock(objects: ClusterObjects) -> None:
    created = get(objects, NODE)["metadata"]["creationTimestamp"]
    assert created == kubernetes_time(CLOCK.of(READY_SINCE))


def test_a_node_is_cordoned_with_a_mark_and_opened_again(objects: ClusterObjects) -> None:
    uid = get(objects, NODE)["metadata"]["uid"]
    mark = {
        "metadata": {"uid": uid, "annotations": {CORDON_ANNOTATION: "{}"}},
        "spec": {"unschedulable": True},
    }
    status, node = objects.answer("PATCH", NODE, {}, mark)
    assert (status, node["spec"]["unschedulable"]) == (200, True)
    assert get(objects, NODE)["metadata"]["annotations"] == {CORDON_ANNOTATION: "{}"}
    objects.answer(
        "PATCH",
        NODE,
        {},
        {"metadata": {"annotations": {CORDON_ANNOTATION: None}}, "spec": {"unschedulable": None}},
    )
    assert "unschedulable" not in get(objects, NODE)["spec"]
    assert get(objects, NODE)["metadata"]["annotations"] == {}


def test_another_node_of_the_same_name_is_not_changed(objects: ClusterObjects) -> None:
    change = {"metadata": {"uid": "other", "annotations": {}}, "spec": {"unschedulable": True}}
    assert objects.answer("PATCH", NODE, {}, change)[0] == 409
    assert objects.answer("DELETE", CLAIM, {}, {"preconditions": {"uid": "other"}})[0] == 409


def test_an_eviction_and_a_deleted_claim_are_noted(objects: ClusterObjects, nodes: WorkerNodes) -> None:
    (pod,) = get(objects, "/api/v1/pods", fieldSelector="spec.nodeName=l40s-node-1")["items"]
    path = f"/api/v1/namespaces/inference/pods/{pod['metadata']['name']}/eviction"
    assert objects.answer("POST", path, {}, {})[0] == 201
    claim = get(objects, CLAIM)
    assert objects.answer("DELETE", CLAIM, {}, {"preconditions": {"uid": claim["metadata"]["uid"]}})[0] == 200
    first = next(iter(nodes))
    assert (first.evicted, first.claim_deleted) == (True, True)
    assert "deletionTimestamp" in get(objects, CLAIM)["metadata"]


def test_a_floor_is_patched_and_read(objects: ClusterObjects) -> None:
    assert objects.floor("chat-worker") == 2
    objects.answer("PATCH", SCALED, {}, {"spec": {"minReplicaCount": 3}})
    assert objects.floor("chat-worker") == 3
    assert get(objects, SCALED)["spec"]["maxReplicaCount"] == 4


def test_a_queue_that_was_changed_meanwhile_is_not_patched(objects: ClusterObjects) -> None:
    path = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/l40s"
    change = {"metadata": {"resourceVersion": "1"}, "spec": {"resourceGroups": [1]}}
    assert objects.answer("PATCH", path, {}, change)[0] == 200
    assert objects.answer("PATCH", path, {}, change)[0] == 409


def test_the_autoscaler_has_the_workers(objects: ClusterObjects, nodes: WorkerNodes) -> None:
    [scaler] = get(objects, "/apis/autoscaling/v2/namespaces/inference/horizontalpodautoscalers")["items"]
    assert scaler["metadata"]["name"] == f"keda-hpa-{nodes.role.name}"
    assert scaler["status"] == {"currentReplicas": 2, "desiredReplicas": 2}


@pytest.mark.parametrize(
    "path", ["/api/v1/nodes/none", SCALED + "x", "/apis/x/horizontalpodautoscalers/none"]
)
def test_what_is_not_there_is_not_found(objects: ClusterObjects, path: str) -> None:
    assert objects.answer("GET", path, {}, None)[0] == 404
