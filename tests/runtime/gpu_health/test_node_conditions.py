"""Nodes that are broken beside their accelerators: what Karpenter's node repair would have replaced."""

from __future__ import annotations

import pytest

from inference_contracts.health_names import OVERFLOW_POOL
from tests.runtime.gpu_health.fake_cluster import moment, node_object
from tests.runtime.gpu_health.test_handlers import replacement
from tests.runtime.gpu_health.world import HealthWorld, report


def condition(world: HealthWorld, node: str, kind: str, status: str) -> None:
    """Let a condition of a node change now."""
    conditions = world.cluster.nodes[node]["status"]["conditions"]
    conditions[:] = [each for each in conditions if each["type"] != kind]
    conditions.append(
        {"type": kind, "status": status, "reason": "Broken", "lastTransitionTime": moment(world.now)}
    )


def later(world: HealthWorld, minutes: int) -> None:
    """Let time pass, of which only the last minute is looked at."""
    world.now += 60 * (minutes - 1)
    world.minutes(1)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("Ready", "False"),
        ("Ready", "Unknown"),
        ("StorageReady", "False"),
        ("NetworkingReady", "False"),
        ("KernelReady", "False"),
        ("ContainerRuntimeReady", "False"),
    ],
)
def test_a_node_whose_condition_lasts_for_half_an_hour_is_replaced(
    world: HealthWorld, kind: str, status: str
) -> None:
    """Red if nobody owns a condition: Karpenter's node repair is off where GPU health repairs."""
    replacement(world)
    condition(world, "node-3", kind, status)
    later(world, 1)
    later(world, 28)
    assert world.state("node-3") == "suspected"
    assert world.cluster.acts == []
    later(world, 2)
    assert world.state("node-3") == "done"


def test_a_condition_that_ends_starts_anew_and_one_that_is_reported_again_does_not(
    world: HealthWorld,
) -> None:
    """Red if half an hour is summed up over recoveries, or if each further error starts the wait again."""
    replacement(world)
    condition(world, "node-3", "KernelReady", "False")
    later(world, 20)
    condition(world, "node-3", "KernelReady", "True")
    later(world, 2)
    assert world.state("node-3") == "cleared"
    for _ in range(3):
        condition(world, "node-3", "KernelReady", "False")
        later(world, 9)
    assert world.state("node-3") == "suspected"
    condition(world, "node-3", "KernelReady", "False")
    later(world, 9)
    assert world.state("node-3") == "done"


def test_a_kept_node_belongs_to_its_pool(world: HealthWorld) -> None:
    """Red if the second NodePool of a pool with a minimum counts as a pool that nobody gave an owner."""
    replacement(world)
    labels = world.cluster.nodes["node-3"]["metadata"]["labels"]
    labels |= {"karpenter.sh/nodepool": "h200.kept", "inference-blueprints/pool": "h200"}
    condition(world, "node-3", "KernelReady", "False")
    later(world, 1)
    later(world, 30)
    assert world.state("node-3") == "done"


def test_a_node_for_routers_is_replaced_too_and_needs_no_successor(world: HealthWorld) -> None:
    """Red if nothing repairs the nodes that Karpenter adds for pods without a pool."""
    world.settings(repairedBy={"h200": "gpuHealth", OVERFLOW_POOL: "gpuHealth"})
    node = node_object("router", created=world.now - 9000, pool=OVERFLOW_POOL)
    del node["metadata"]["labels"]["karpenter.k8s.aws/instance-gpu-count"]
    node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "m7i.xlarge"
    world.cluster.add_node(node)
    world.cluster.on_claim_deleted = lambda _: world.cluster.remove_node("router")
    condition(world, "router", "Ready", "Unknown")
    later(world, 1)
    later(world, 30)
    assert world.state("router") == "done"
    assert world.messages == []


def test_a_condition_that_nothing_confirms_is_told_before_it_is_forgotten(world: HealthWorld) -> None:
    """Red if a node that the agent calls broken stays in service without anybody knowing."""
    conditions = world.cluster.nodes["node-3"]["status"]["conditions"]
    conditions.append(
        {
            "type": "AcceleratedHardwareReady",
            "status": "False",
            "reason": "NvidiaXID94Error",
            "lastTransitionTime": moment(world.now),
        }
    )
    world.minutes(1)
    assert world.state("node-3") == "suspected"
    world.now += 6 * 3600
    report(world.cluster, world.now)
    world.minutes(2)
    assert world.state("node-3") == "cleared"
    (message,) = world.messages
    assert "NvidiaXID94Error" in message["Message"]
