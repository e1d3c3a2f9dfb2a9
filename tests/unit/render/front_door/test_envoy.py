"""A real Envoy takes the configuration, and a request goes from a caller to the cluster of the decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.render.front_door.door_process import CHAT, Door, running_door

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("door")) as found:
        yield found


def test_a_request_reaches_the_cluster_and_its_line_settles_it(door: Door) -> None:
    answer = door.ask("POST", CHAT, {"model": "public/model", "messages": [], "max_tokens": 5})
    assert answer.status == 200
    asked = door.policy.seen[-1].headers
    assert (asked["x-door-model"], asked["x-door-max-tokens"]) == ("public/model", "5")
    assert asked["x-door-bytes"] == str(len(door.engine.seen[-1].body))
    line = door.line(answer.headers["x-request-id"])
    settled = {name: line[name] for name in ("in", "out", "status", "team", "reservation", "reserved")}
    assert settled == {
        "in": 7,
        "out": 3,
        "status": 200,
        "team": "search",
        "reservation": answer.headers["x-request-id"],
        "reserved": "1000",
    }


def test_a_refusal_of_the_policy_reaches_the_caller(door: Door) -> None:
    before = len(door.engine.seen)
    answer = door.ask("POST", CHAT, {"model": "m"}, {"authorization": "Bearer bad"})
    assert (answer.status, answer.code, len(door.engine.seen)) == (401, "invalid_api_key", before)


def test_callers_cannot_choose_the_address_by_which_wrong_keys_are_counted(door: Door) -> None:
    """A header that a caller forges, so that each guess comes from another address."""

    def address() -> str:
        forged = {"x-forwarded-for": "10.9.9.9, 10.1.1.1", "x-door-address": "10.8.8.8"}
        door.ask("POST", CHAT, {"model": "m"}, forged)
        return door.policy.seen[-1].headers["x-door-address"]

    assert address() == "127.0.0.1"
    # Behind a load balancer, which adds the address of its caller.
    door.places = replace(door.places, trusted_hops=1)
    door.write(door.plan)
    door.wait_until(lambda: address() == "10.1.1.1")
