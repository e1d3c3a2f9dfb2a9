"""The checks of a cluster: a healthy one passes, and each thing that breaks is named with what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify import node_checks, release_checks, worker_checks
from inference_blueprints.operate.verify.kv_transfer_checks import kv_transfer
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from tests.unit.operate.verify import recorded
from tests.unit.operate.verify.conftest import RELEASES
from tests.unit.operate.verify.recorded import EFA, RecordedCluster, conditions

MakePlatform = Callable[..., VerifiedPlatform]


def problems(observations: Iterable[CheckResult]) -> list[CheckResult]:
    return [each for each in observations if each.severity != "ok"]


def only(observations: Iterable[CheckResult]) -> CheckResult:
    """The one thing that is not well."""
    (found,) = problems(observations)
    return found


def mirrored(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"].update(revision="9216db5781bf21249d130ec9da846c4624c16137", mirror={})


@pytest.mark.parametrize(
    "check",
    [
        node_checks.nodes,
        node_checks.pools,
        release_checks.device_plug_ins,
        release_checks.charts,
        worker_checks.workers,
        kv_transfer,
    ],
    ids=lambda check: check.__name__,
)
def test_nothing_is_wrong_with_a_healthy_platform(check: Any, running: RunningPlatform) -> None:
    seen = list(check(running))
    assert seen
    assert problems(seen) == []


# Nodes


def test_a_node_whose_efa_cannot_be_allocated(running: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["nodes"][3]["status"]["allocatable"][EFA] = "0"
    found = only(node_checks.nodes(running))
    assert (found.check, found.severity) == ("nodes", "error")
    assert "pool h200: h200-1: 0 of 16 vpc.amazonaws.com/efa can be allocated" in found.message
    assert found.command == "kubectl describe node h200-1"


def test_a_node_without_its_device_plug_in(running: RunningPlatform, cluster: RecordedCluster) -> None:
    del cluster.objects["nodes"][2]["status"]["allocatable"]["nvidia.com/gpu"]
    assert "0 of 8 nvidia.com/gpu can be allocated" in only(node_checks.nodes(running)).message


def test_a_node_of_another_type_or_without_its_label(
    running: RunningPlatform, cluster: RecordedCluster
) -> None:
    first, second = (each["metadata"]["labels"] for each in cluster.objects["nodes"][2:])
    first["node.kubernetes.io/instance-type"] = "p5.48xlarge"
    del second["inference-blueprints/efa"]
    messages = [each.message for each in problems(node_checks.nodes(running))]
    assert "is p5.48xlarge, the pool has p5en.48xlarge" in messages[0]
    assert "label inference-blueprints/efa is None, not 'true'" in messages[1]


def test_a_node_whose_kubelet_or_accelerator_is_ill(
    running: RunningPlatform, cluster: RecordedCluster
) -> None:
    first, second = cluster.objects["nodes"][2:]
    first["status"]["conditions"] = conditions(Ready="kubelet stopped")
    second["status"]["conditions"] += conditions(AcceleratedHardwareReady="XID 79")
    messages = [each.message for each in problems(node_checks.nodes(running))]
    assert "h200-0: not ready: kubelet stopped" in messages[0]
    assert "AcceleratedHardwareReady is false: Reason: XID 79" in messages[1]


def test_fewer_nodes_than_are_kept(platform: MakePlatform, cluster: RecordedCluster) -> None:
    running = RunningPlatform(
        platform(lambda spec: spec["pools"][0].update(nodes={"min": 3, "max": 3})), cluster
    )
    assert "pool h200: 2 of 2 are ready, the minimum is 3" in only(node_checks.nodes(running)).message


def test_a_node_that_is_not_ready_is_not_kept(platform: MakePlatform, cluster: RecordedCluster) -> None:
    kept = platform(lambda spec: spec["pools"][0].update(nodes={"min": 2, "max": 3}))
    cluster.objects["nodes"][3]["status"]["conditions"] = conditions(Ready="kubelet stopped")
    messages = [each.message for each in problems(node_checks.nodes(RunningPlatform(kept, cluster)))]
    assert "pool h200: 1 of 2 are ready, the minimum is 2" in messages


def test_no_system_nodes(running: RunningPlatform, cluster: RecordedCluster) -> None:
    del cluster.objects["nodes"][1]
    assert "system nodes: 1 of 1 are ready, the minimum is 2" in only(node_checks.nodes(running)).message


# Pools


def test_a_pool_that_karpenter_does_not_have(running: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["nodepools.karpenter.sh"].clear()
    found = only(node_checks.pools(running))
    assert found.message == "h200: Karpenter has no NodePool for it"
    assert found.command == "blueprints deploy a.yaml"


def test_a_node_class_that_finds_no_subnets(running: RunningPlatform, cluster: RecordedCluster) -> None:
    (node_class,) = cluster.objects["ec2nodeclasses.karpenter.k8s.aws"]
    node_class["status"]["conditions"] = conditions(SubnetsReady="no subnets match", Ready=False)
    assert (
        "ec2nodeclass h200 is not ready (SubnetsReady: no subnets match)"
        in only(node_checks.pools(running)).message
    )


def test_a_node_pool_without_its_node_class(running: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["ec2nodeclasses.karpenter.k8s.aws"].clear()
    assert "the EC2NodeClass h200 does not exist" in only(node_checks.pools(running)).message


# Device plug-ins


def test_a_device_plug_in_that_is_missing(running: RunningPlatform, cluster: RecordedCluster) -> None:
    del cluster.objects["daemonsets"][1]
    assert (
        "aws-efa-k8s-device-plugin has no DaemonSet" in only(release_checks.device_plug_ins(running)).message
    )


def test_a_device_plug_in_that_is_not_ready_everywhere(
    running: RunningPlatform, cluster: RecordedCluster
) -> None:
    cluster.objects["daemonsets"][1]["status"]["numberReady"] = 1
    assert "efa-plug-in: ready on 1 of 2 nodes" in only(release_checks.device_plug_ins(running)).message


# Charts


def test_a_chart_that_is_not_installed(running: RunningPlatform, cluster: RecordedCluster) -> None:
    del cluster.objects["secrets"][0]
    assert only(release_checks.charts(running)).message == "karpenter in kube-system: not installed"


def test_a_chart_of_another_version(running: RunningPlatform, cluster: RecordedCluster) -> None:
    old = RELEASES["karpenter"].__class__("karpenter", "kube-system", "1.13.0")
    cluster.objects["secrets"][0] = recorded.helm_secret(old)
    assert "version 1.13.0 is installed, 1.14.1 is pinned" in only(release_checks.charts(running)).message


@pytest.mark.parametrize("status", ["failed", "pending-upgrade"])
def test_the_newest_revision_counts(status: str, running: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["secrets"].append(recorded.helm_secret(RELEASES["karpenter"], revision=10, status=status))
    assert f"its newest revision is {status}" in only(release_checks.charts(running)).message


def test_a_release_of_the_same_name_elsewhere_is_another(
    running: RunningPlatform, cluster: RecordedCluster
) -> None:
    cluster.objects["secrets"][0]["metadata"]["namespace"] = "default"
    assert "not installed" in only(release_checks.charts(running)).message


def test_a_controller_that_is_not_ready(running: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["deployments"] = [recorded.controller("karpenter", "karpenter", ready=1)]
    assert "deployment karpenter: 1 of 2 are ready" in only(release_checks.charts(running)).message


# Weights


@pytest.mark.parametrize(
    ("status", "severity", "words"),
    [
        (conditions(Complete=True), "ok", "copied into the platform's bucket"),
        (conditions(Failed=True), "error", "not copied"),
        ([], "warning", "still being copied"),
        (None, "error", "no Job copies it"),
    ],
)
def test_a_mirror_is_done_or_not(
    platform: MakePlatform, cluster: RecordedCluster, status: Any, severity: str, words: str
) -> None:
    labels = {"app.kubernetes.io/instance": "qwen3-32b.weights"}
    metadata = {"name": "qwen3-32b.weights-1", "namespace": "inference", "labels": labels}
    cluster.objects["jobs"] = (
        [] if status is None else [{"metadata": metadata, "status": {"conditions": status}}]
    )
    (found,) = release_checks.weights(RunningPlatform(platform(mirrored), cluster))
    assert found.severity == severity
    assert words in found.message


def test_without_a_mirror_there_is_nothing_to_say(running: RunningPlatform) -> None:
    assert list(release_checks.weights(running)) == []


# Workers


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"conditions": conditions(PodScheduled="0/4 nodes: 4 Insufficient efa")}, "has no node: 0/4 nodes"),
        (
            {
                "conditions": conditions(PodScheduled=True, Ready=False),
                "containerStatuses": [
                    {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "gone"}}}
                ],
            },
            "main is ImagePullBackOff: gone",
        ),
        (
            {"conditions": conditions(PodScheduled=True, ContainersReady="not started", Ready=False)},
            "ContainersReady: not started",
        ),
    ],
    ids=["no node", "no image", "not started"],
)
def test_workers_that_are_not_ready_say_why(
    running: RunningPlatform, cluster: RecordedCluster, status: Any, words: str
) -> None:
    (decode,) = [each for each in cluster.objects["pods"] if each["metadata"]["name"] == "decode-0"]
    decode["status"] = status
    found = only(worker_checks.workers(running))
    assert found.severity == "error"
    assert "qwen3-32b-main/decode: 0 of 1 are ready; decode-0: " in found.message
    assert words in found.message
    assert "app.kubernetes.io/component=decode" in (found.command or "")


def test_pods_that_are_missing_or_on_their_way_out_do_not_count(
    running: RunningPlatform, cluster: RecordedCluster
) -> None:
    cluster.objects["pods"][2]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = only(worker_checks.workers(running))
    assert found.message == "qwen3-32b-main/prefill: 11 of 12 are ready; the others are missing"


def test_many_unready_workers_are_counted(running: RunningPlatform, cluster: RecordedCluster) -> None:
    for pod in cluster.objects["pods"][2:8]:
        pod["status"] = {"phase": "Pending"}
    found = only(worker_checks.workers(running))
    assert found.message.count("is Pending") == 3
    assert found.message.endswith("and 3 more")


def test_restarts_are_told_with_their_reason(running: RunningPlatform, cluster: RecordedCluster) -> None:
    last = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    cluster.objects["pods"][14]["status"]["containerStatuses"] = [
        {"name": "main", "state": {"running": {}}, "restartCount": 4, "lastState": last}
    ]
    found = only(worker_checks.workers(running))
    assert found.severity == "warning"
    assert "decode-0 was restarted 4 times (last: OOMKilled, exit code 137)" in found.message
