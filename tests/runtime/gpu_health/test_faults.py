"""Whatever fails, and wherever a function is killed: a replacement is resumed, and never doubled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from operations.operations_errors import OperationsError
from tests.runtime.gpu_health.fake_cluster import node_object, pod_object
from tests.runtime.gpu_health.test_handlers import replacement
from tests.runtime.gpu_health.world import HealthWorld, KilledError, populate, report, xid_event

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "any")
REFUSED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "any")
LATE = ReadTimeoutError(endpoint_url="https://aws")
AWAY = ConnectTimeoutError(endpoint_url="https://aws")
#: What the functions call of AWS on the way to a replacement.
OPERATIONS = ("GetParameter", "GetItem", "Query", "TransactWriteItems", "DescribeAlarms")


def attempt(act: Callable[[], object]) -> None:
    """Call a function as Lambda does: an error ends the invocation."""
    with suppress(OperationsError):
        act()


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(THROTTLED, id="throttled"),
        *(
            pytest.param(error, id=name, marks=pytest.mark.thorough)
            for name, error in (("refused", REFUSED), ("late", LATE), ("away", AWAY))
        ),
    ],
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_service_that_fails_for_a_while_delays_a_replacement(
    world: HealthWorld, operation: str, error: Exception
) -> None:
    replacement(world)
    world.failing[operation] = error
    attempt(lambda: world.hardware(xid_event("node-3", at=world.now - 30)))
    for _ in range(3):
        attempt(lambda: world.minutes(1))
    assert len(world.cluster.deleted_claims()) <= 1
    world.failing.clear()
    attempt(lambda: world.hardware(xid_event("node-3", at=world.now - 30)))
    world.minutes(1)
    assert (world.state("node-3"), len(world.cluster.deleted_claims())) == ("done", 1)


@pytest.mark.parametrize(
    "path",
    [
        "GET /api/v1/nodes/",
        "GET /api/v1/pods",
        "PATCH /",
        "POST /",
        "DELETE /",
        "GET /apis",
        "POST /api/v1/query",
    ],
)
def test_an_api_server_or_metrics_that_are_away_delay_a_replacement(world: HealthWorld, path: str) -> None:
    replacement(world)
    world.cluster.failing[path] = 503
    attempt(lambda: world.hardware(xid_event("node-3", at=world.now - 30)))
    attempt(lambda: world.minutes(2))
    world.cluster.failing.clear()
    attempt(lambda: world.hardware(xid_event("node-3", at=world.now - 30)))
    world.minutes(1)
    assert (world.state("node-3"), len(world.cluster.deleted_claims())) == ("done", 1)


def test_an_act_that_is_refused_for_good_is_given_up_and_told(world: HealthWorld) -> None:
    world.cluster.failing["PATCH /api/v1/nodes"] = 403
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(6)
    assert (world.state("node-3"), len(world.messages)) == ("gave_up", 1)
    assert world.store().places(world.now)[0] == {"h200": []}


def test_metrics_of_an_hour_ago_or_none_at_all_drain_nothing(world: HealthWorld) -> None:
    slow = {"worker-5": 0.5}
    report(world.cluster, world.now, slow=slow, minutes=10)
    world.now += 3600
    for _ in range(3):
        world.now += 60
        world.minute()
    world.cluster.failing["POST /api/v1/query"] = 429
    world.now -= 3600
    attempt(world.minute)
    assert world.cluster.acts == []


def test_an_answer_that_is_not_complete_judges_nobody(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(world.cluster, world.now, slow={"worker-5": 0.5}, minutes=10)
    plain = world.cluster._answer

    def truncated(environ: dict[str, object], start_response: Callable[..., object]) -> object:
        (text,) = plain(environ, lambda status, headers: start_response(status, headers[:1]))
        return [
            text.replace(b'"status": "success"', b'"status": "success", "warnings": ["more than 500 series"]')
        ]

    monkeypatch.setattr(world.cluster._server, "app", truncated)
    world.minute()
    assert list(world.store().cases(world.now)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("function", ["hardware", "minute"])
def test_killed_after_every_call_a_replacement_is_resumed_and_not_doubled(
    world: HealthWorld, function: str
) -> None:
    """The function is killed after its first change, its second, and so on, each time in another cell."""
    replaced = 0
    for last in range(1, 200):
        world.lose_the_table()
        for store in (world.cluster.nodes, world.cluster.pods, world.cluster.claims):
            store.clear()
        world.cluster.acts.clear()
        populate(world.cluster, world.now)
        report(world.cluster, world.now)
        replacement(world)
        event = xid_event("node-3", at=world.now - 30)
        if function == "minute":
            world.settings(action="observe")
            world.hardware(event)
            world.settings()
        with world.killed_after(last) as calls:
            if function == "hardware":
                world.hardware(event)
            else:
                world.minute()
        world.hardware(event)
        world.minutes(3)
        assert len(world.cluster.deleted_claims()) == 1, f"killed after {calls.made[-1]}"
        assert world.state("node-3") in ("done", ""), f"killed after {calls.made[-1]}"
        assert world.cluster.cordoned() == []
        assert not world.store().places(world.now)[0].get("h200")
        replaced += 1
        world.now += 7200
        if len(calls.made) < last:
            break
    assert replaced > 8


def test_the_table_that_is_lost_in_the_middle_is_filled_from_the_nodes(world: HealthWorld) -> None:
    replacement(world)
    world.cluster.pods_end = False
    world.hardware(xid_event("node-3", at=world.now - 30))
    assert world.state("node-3") == "draining"
    world.lose_the_table()
    # Another node of the pool has to wait, although the table knows of no replacement.
    world.hardware(xid_event("node-4", at=world.now - 30))
    assert world.cluster.cordoned() == ["node-3"]
    world.cluster.pods.pop("worker-3")
    world.minutes(1)
    assert world.state("node-3") == "done"
    assert world.case("node-3").evidence[0].code == "79"  # type: ignore[union-attr]


@pytest.mark.parametrize("skew", [-240.0, 240.0])
def test_a_clock_that_is_wrong_neither_hides_nor_invents_a_replacement(
    world: HealthWorld, skew: float
) -> None:
    world.cluster.skew = skew

    def deleted(claim: str) -> None:
        world.cluster.remove_node(claim.removeprefix("claim-"))
        made = world.now + skew + 1
        world.cluster.add_node(
            node_object("node-new", created=made), pod_object("pod-new", "node-new", ready=made)
        )

    # A node that joined a minute before the fault is no replacement.
    world.cluster.add_node(
        node_object("node-before", created=world.now + skew - 60),
        pod_object("pod-before", "node-before", ready=world.now + skew - 50),
    )
    world.cluster.on_claim_deleted = deleted
    world.hardware(xid_event("node-3", at=world.now - 30))
    world.minutes(1)
    case = world.case("node-3")
    assert case is not None
    assert (case.state, case.replacement) == ("done", "node-new")


def test_two_runs_at_once_take_one_place(world: HealthWorld) -> None:
    """The second run begins where the first is about to store its first step."""
    world.cluster.pods_end = False
    plain, nested = world.calls.count, list[str]()

    def count(name: str) -> None:
        plain(name)
        if name.startswith("PATCH") and not nested:
            nested.append(name)
            world.hardware(xid_event("node-4", at=world.now - 30))
            world.hardware(xid_event("node-3", at=world.now - 30))

    world.calls.count = count  # type: ignore[method-assign]
    world.hardware(xid_event("node-3", at=world.now - 30))
    assert nested
    assert world.cluster.cordoned() == ["node-3"]
    assert world.state("node-3") == "draining"
    assert world.state("node-4") == "confirmed"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_under_random_kills_and_doubled_events_no_node_and_no_place_is_doubled(
    world: HealthWorld, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    made = Counter[str]()
    maximum = 0

    def deleted(claim: str) -> None:
        made[claim] += 1
        world.cluster.remove_node(claim.removeprefix("claim-"))
        name = f"new-{len(made)}-{seed}"
        world.cluster.add_node(
            node_object(name, created=world.now + 1), pod_object(f"pod-{name}", name, ready=world.now + 2)
        )

    world.cluster.on_claim_deleted = deleted
    events = [xid_event(f"node-{number}", at=world.now - 10) for number in (1, 4, 6)] * 2
    chance.shuffle(events)
    for step in range(18):
        world.now += 20
        report(world.cluster, world.now)
        with world.killed_after(chance.randrange(1, 12) if chance.random() < 0.5 else 0):
            if events and step % 2:
                world.hardware(events.pop())
            else:
                world.minute()
        maximum = max(maximum, len(world.cluster.cordoned()))
    world.minutes(4)
    assert set(made.values()) == {1}
    assert sorted(made) == ["claim-node-1", "claim-node-4", "claim-node-6"]
    assert maximum <= 1


def test_a_kill_is_no_exception_that_the_code_catches() -> None:
    assert not issubclass(KilledError, Exception)
