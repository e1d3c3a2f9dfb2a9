"""One policy process, with a real store and an emulated table of keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_contracts import door_headers
from inference_contracts.door_configuration import DoorBudget
from tests.runtime.front_door.conftest import Platform
from tests.runtime.front_door.policy_process import PolicyProcess, a_configuration, wait_for

pytestmark = pytest.mark.clock

#: What a request costs at most, in nano-dollars, with 256 tokens of the template; and what it costs really.
MOST, COST = 356 * 200 + 100 * 800, 12 * 200 + 5 * 800


@pytest.fixture
def policy(platform: Platform, tmp_path: Path) -> Iterator[PolicyProcess]:
    budget = DoorBudget("team", "red", nano_per_day=2 * MOST)
    running = PolicyProcess(tmp_path / "one", a_configuration(budget), **platform.settings())
    yield running
    running.stop()


def test_a_request_is_reserved_refused_and_settled(policy: PolicyProcess, platform: Platform) -> None:
    """Red if a budget admits more than it has, or if a settlement gives back nothing, or twice."""
    key = platform.known_key("red", policy)
    admitted = policy.ask(key)
    assert admitted.status == 200
    assert admitted.headers[door_headers.TARGET] == "primary"
    assert admitted.headers[door_headers.RESERVED] == str(MOST)
    assert policy.ask(key).status == 200
    refused = policy.ask(key)
    assert (refused.status, refused.code) == (429, "insufficient_quota")
    assert 1 <= int(refused.headers["retry-after"]) <= 25 * 3600
    policy.log(admitted)
    policy.log(admitted)
    wait_for(lambda: policy.metric("settled_again_total") == 1)
    assert policy.metric("spent_nano_total") == COST
    assert policy.ask(key).status == 429
