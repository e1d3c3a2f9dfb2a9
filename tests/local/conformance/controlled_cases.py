"""What a platform with GPU health and a capacity shift must do, whatever it runs on.

The deployed functions run. Every token of every stream is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inference_contracts.health_names import ENDED_CASES
from tests.local.conformance.cases import streams_while
from tests.local.conformance.controlled_platforms import MAXIMUM, ControlledPlatform
from tests.local.conformance.platforms import eventually

_STATES = ("confirmed", "cordoned", "draining", "replacing", "done")


def the_capacity_shift_moves_the_floor_of_workers(platform: ControlledPlatform) -> None:
    # No client streams: the demand of the days before, which is made up, decides alone.
    eventually(lambda: platform.serving() == MAXIMUM, f"{MAXIMUM} workers: floors {platform.floors()}")
    eventually(lambda: _falls(platform.floors()), "lower floor after a higher one")
    assert max(platform.floors()) == MAXIMUM
    assert platform.failed_runs() == []


def a_host_that_loses_a_gpu_is_drained_and_replaced(platform: ControlledPlatform) -> None:
    hosts = platform.hosts()

    def disturb() -> None:
        broken.append(platform.break_host())
        eventually(lambda: _case(platform, broken[0]).get("state") in ENDED_CASES, "end of the repair")

    broken: list[str] = []
    assert streams_while(platform, disturb) > 0
    [name] = broken
    case = _case(platform, name)
    assert case["state"] == "done", case
    times = [case["times"][state] for state in _STATES]
    assert times == sorted(times)
    assert [each["kind"] for each in case["evidence"]] == ["gpus_missing"]
    eventually(lambda: name not in platform.hosts(), "end of the host")
    assert platform.hosts() - hosts  # a new one
    assert [each["node"] for each in platform.cases() if "cordoned" in each["times"]] == [name]


def _case(platform: ControlledPlatform, host: str) -> dict[str, Any]:
    return next((each for each in platform.cases() if each["node"] == host), {})


def _falls(floors: list[int]) -> bool:
    return MAXIMUM in floors and any(each < MAXIMUM for each in floors[floors.index(MAXIMUM) :])


CASES: tuple[Callable[[ControlledPlatform], None], ...] = (
    the_capacity_shift_moves_the_floor_of_workers,
    a_host_that_loses_a_gpu_is_drained_and_replaced,
)
