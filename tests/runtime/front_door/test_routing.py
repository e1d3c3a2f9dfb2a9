"""Where requests go: by conversation, by weight, and by which targets have room."""

from __future__ import annotations

from dataclasses import replace

from front_door.router import NoRoom, choose_target, home_of
from front_door.target_load import TargetLoads

from inference_contracts.door_configuration import DoorTarget
from tests.runtime.front_door.policy_process import a_model

TWO = a_model(targets=(DoorTarget("a", "s", 95, 10), DoorTarget("b", "s", 5, 10)))


def test_a_canary_gets_its_share_of_the_conversations_and_keeps_them() -> None:
    """Red if weights are not shares, or if a conversation changes its target without need."""
    conversations = [f"c{number}" for number in range(4000)]
    homes = {each: home_of(TWO, each).cluster for each in conversations}
    share = sum(home == "b" for home in homes.values()) / len(homes)
    assert 0.04 < share < 0.06
    # With a larger weight the canary keeps what it had, and gets more.
    larger = replace(TWO, targets=(DoorTarget("a", "s", 80, 10), DoorTarget("b", "s", 20, 10)))
    moved = {each for each, home in homes.items() if home_of(larger, each).cluster != home}
    assert all(homes[each] == "a" for each in moved)
    assert 0.12 < len(moved) / len(homes) < 0.18


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_requests_spill_over_and_the_lowest_priority_is_refused_first() -> None:
    """Red if a full target gets more, batch takes the room of interactive requests, or nobody is refused."""
    clock = Clock()
    loads = TargetLoads(clock)
    model = a_model(targets=(DoorTarget("a", "s", 100, 10), DoorTarget("b", "s", 0, 10)))

    def target(priority: int) -> str:
        found = choose_target(model, "c", priority, loads)
        return "" if isinstance(found, NoRoom) else found.cluster

    def fill(cluster: str, number: int) -> None:
        while loads.own[cluster] < number:
            loads.began(cluster)

    fill("a", 8)
    assert [target(0), target(50), target(100)] == ["b", "a", "a"]
    fill("b", 8)
    assert [target(0), target(50), target(100)] == ["", "a", "a"]
    fill("a", 12)
    fill("b", 12)
    assert [target(50), target(100)] == ["", "a"]
    loads.set_others({"a": 3.0, "b": 3.0})
    assert target(100) == ""


def test_the_time_to_wait_is_when_there_is_room() -> None:
    """Red if callers are told a constant: after this time at this rate, so many have ended."""
    clock = Clock()
    loads = TargetLoads(clock)
    model = a_model(targets=(DoorTarget("a", "s", 100, 10),))
    for _ in range(40):
        loads.began("a")
    for _ in range(10):  # two end per second
        clock.now += 1
        loads.ended("a", is_full=False)
        loads.ended("a", is_full=False)
    found = choose_target(model, "c", 0, loads)
    assert isinstance(found, NoRoom)
    clock.now += found.retry_after
    for _ in range(2 * found.retry_after):
        loads.ended("a", is_full=False)
    assert not isinstance(choose_target(model, "c", 0, loads), NoRoom)
    assert found.retry_after == 7


def test_a_target_that_says_it_is_full_gets_nothing_for_a_moment() -> None:
    """Red if a target whose workers are gone is asked again and again."""
    clock = Clock()
    loads = TargetLoads(clock)
    loads.began("a")
    loads.ended("a", is_full=True)
    model = a_model(targets=(DoorTarget("a", "s", 100, 10), DoorTarget("b", "s", 0, 10)))
    found = choose_target(model, "c", 50, loads)
    assert not isinstance(found, NoRoom)
    assert found.cluster == "b"
    clock.now += 1.5
    found = choose_target(model, "c", 50, loads)
    assert not isinstance(found, NoRoom)
    assert found.cluster == "a"


def test_a_target_that_refuses_gets_less_and_slowly_more_again() -> None:
    """Red if a target with half of its workers is asked for all it could take, or never again for that."""
    clock = Clock()
    loads = TargetLoads(clock)
    model = a_model(targets=(DoorTarget("a", "s", 100, 100),))

    def room(priority: int = 50) -> int:
        """Return how many requests are in progress when the next one is refused."""
        while not isinstance(choose_target(model, "c", priority, loads), NoRoom):
            loads.began("a")
        return loads.own["a"]

    def refuse(number: int) -> None:
        for _ in range(number):
            loads.ended("a", is_full=True)
        clock.now += 1

    assert room() == 115
    refuse(15)  # of one second: they count as one
    assert loads.bound("a", 100) == 0.75 * 114 + 1
    while loads.own["a"] > 50:
        loads.ended("a", is_full=False)
    assert room() == 100
    while loads.own["a"] > 40:
        loads.ended("a", is_full=False)
    refuse(1)
    # Batch leaves room for others here too.
    while loads.own["a"]:
        loads.ended("a", is_full=False)
    assert loads.bound("a", 100) == 0.75 * 39 + 1
    assert (room(0), room(50)) == (25, 35)
    clock.now += 20
    assert room() == 58
    clock.now += 100
    assert room() == 115
    # A target whose workers are gone is back within two minutes, and asked by one request until then.
    loads.own["a"] = 1
    refuse(1)
    assert 1 <= room() <= 2
    clock.now += 100
    assert room() == 115
