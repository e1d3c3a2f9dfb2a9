"""What docs/gpu-health.md says of giving a node back and of rolling back, and several faults at once."""

from __future__ import annotations

from tests.runtime.gpu_health.fake_cluster import node_object, pod_object
from tests.runtime.gpu_health.world import HealthWorld, report, xid_event

ANNOTATION = "inference-blueprints/gpu-health"


def draining(world: HealthWorld, name: str = "node-3") -> None:
    """Let the replacement of a node begin, and its pod stay."""
    world.cluster.pods_end = False
    report(world.cluster, world.now)
    world.hardware(xid_event(name, at=world.now - 30))
    assert world.state(name) == "draining"
    assert ANNOTATION in world.cluster.nodes[name]["metadata"]["annotations"]


def test_a_node_that_people_give_back_stays_open_while_it_is_frozen(world: HealthWorld) -> None:
    draining(world)
    world.freeze("health")
    node = world.cluster.nodes["node-3"]
    del node["spec"]["unschedulable"], node["metadata"]["annotations"][ANNOTATION]
    acts = list(world.cluster.acts)
    world.minutes(5)
    assert (world.cluster.cordoned(), world.cluster.acts) == ([], acts)


def test_rolled_back_to_observing_a_closed_node_stays_closed_and_whole(world: HealthWorld) -> None:
    draining(world)
    world.settings(action="observe")
    acts = list(world.cluster.acts)
    world.cluster.pods.pop("worker-3")
    world.minutes(5)
    assert (world.cluster.cordoned(), world.cluster.acts) == (["node-3"], acts)


def sixteen(world: HealthWorld) -> None:
    """Make sixteen nodes of one worker each, in four racks."""
    for number in range(8, 16):
        name = f"node-{number}"
        world.cluster.add_node(
            node_object(name, created=world.now - 86400, rack=f"rack-{number % 4}"),
            pod_object(f"worker-{number}", name, ready=world.now - 80000),
        )

    def deleted(claim: str) -> None:
        name = claim.removeprefix("claim-")
        world.cluster.remove_node(name)
        rack = f"rack-{int(name.removeprefix('node-')) % 4}"
        world.cluster.add_node(
            node_object(f"{name}9", created=world.now + 1, rack=rack),
            pod_object(f"worker-of-{name}9", f"{name}9", ready=world.now + 2),
        )

    world.cluster.on_claim_deleted = deleted


def pass_minutes(world: HealthWorld, count: int, slow: dict[str, float]) -> None:
    for _ in range(count):
        world.now += 60
        report(world.cluster, world.now, slow=slow)
        world.minute()


def test_one_worker_then_a_rack_then_a_release_become_slow_and_one_node_is_replaced(
    world: HealthWorld,
) -> None:
    sixteen(world)
    report(world.cluster, world.now, minutes=10)
    pass_minutes(world, 4, {"worker-5": 0.4})
    assert world.cluster.deleted_claims() == ["DELETE /apis/karpenter.sh/v1/nodeclaims/claim-node-5"]
    pass_minutes(world, 15, {})
    rack = {f"worker-{number}": 0.4 for number in range(2, 16, 4)}
    pass_minutes(world, 6, rack)
    assert ("rack", "rack-2") in world.store().read_observation(world.now).shifts
    pass_minutes(world, 15, {})
    pass_minutes(world, 6, dict.fromkeys(world.cluster.pods, 0.4))
    assert len(world.cluster.deleted_claims()) == 1
    assert world.cluster.cordoned() == []


def test_a_fatal_fault_in_a_slow_rack_still_replaces_its_node_and_no_other(world: HealthWorld) -> None:
    sixteen(world)
    report(world.cluster, world.now, minutes=10)
    rack = {f"worker-{number}": 0.5 for number in range(2, 16, 4)}
    pass_minutes(world, 3, rack)
    world.hardware(xid_event("node-6", at=world.now - 20))
    pass_minutes(world, 3, rack)
    assert world.cluster.deleted_claims() == ["DELETE /apis/karpenter.sh/v1/nodeclaims/claim-node-6"]


def test_a_worker_that_is_slow_every_second_minute_costs_no_other_node(world: HealthWorld) -> None:
    sixteen(world)
    report(world.cluster, world.now, minutes=10)
    for minute in range(6):
        pass_minutes(world, 1, {"worker-5": 0.4} if minute % 2 else {})
    assert set(world.cluster.deleted_claims()) <= {"DELETE /apis/karpenter.sh/v1/nodeclaims/claim-node-5"}
    assert set(world.cluster.cordoned()) <= {"node-5"}


def test_events_of_five_nodes_at_once_replace_one_after_the_other_up_to_the_cap(world: HealthWorld) -> None:
    sixteen(world)
    report(world.cluster, world.now, minutes=10)
    for number in (1, 6, 8, 11, 15):
        world.hardware(xid_event(f"node-{number}", at=world.now - 20))
    pass_minutes(world, 10, {})
    assert len(world.cluster.deleted_claims()) == 4, "replacementsPerHour"
    assert len(world.cluster.cordoned()) == 0
