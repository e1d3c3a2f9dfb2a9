"""Whatever call fails, or is the last one before a kill: real time comes first, the next run completes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from operations.operations_errors import KubernetesError, MetricsError
from tests.runtime.capacity_shift.shift_platform import (
    NOW,
    ApiServer,
    Series,
    ShiftPlatform,
    new_platform,
    shift_configuration,
    shifted_workers,
)


class KilledError(BaseException):
    """Lambda ended the process."""


@dataclass
class Faults:
    """Counts the calls of services, and breaks one or all from one on."""

    breaks: Callable[[str], BaseException]
    first: int
    lasts: bool
    calls: int = 0

    def check(self, service: str) -> None:
        self.calls += 1
        if self.calls == self.first or (self.lasts and self.calls > self.first):
            raise self.breaks(service)


def throttled(service: str) -> BaseException:
    if service == "kubernetes":
        return KubernetesError("429 too many requests", 429)
    if service == "metrics":
        return MetricsError("429")
    error: BaseException = ClientError(
        {"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, service
    )
    return error


def timed_out(service: str) -> BaseException:
    if service == "kubernetes":
        return KubernetesError("the API server did not answer")
    if service == "metrics":
        return MetricsError("CloudWatch did not answer")
    error: BaseException = ReadTimeoutError(endpoint_url=service)
    return error


def killed(_service: str) -> BaseException:
    return KilledError()


@contextmanager
def broken(faults: Faults) -> Iterator[None]:
    """Break calls of AWS, the API server and PromQL within the block."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, method, service in (
            (BaseClient, "_make_api_call", "aws"),
            (ApiServer, "get", "kubernetes"),
            (ApiServer, "list", "kubernetes"),
            (ApiServer, "patch", "kubernetes"),
            (Series, "range", "metrics"),
            (Series, "instant", "metrics"),
        ):
            patch.setattr(owner, method, _checked(getattr(owner, method), service, faults))
        yield


def _checked(call: Callable[..., Any], service: str, faults: Faults) -> Callable[..., Any]:
    def checked(*arguments: Any, **values: Any) -> Any:
        faults.check(service)
        return call(*arguments, **values)

    return checked


RAISED, LOWERED = shifted_workers("main"), shifted_workers("other")


def prepared() -> ShiftPlatform:
    """Batch gets more of the pool and less of the model than before."""
    platform = new_platform(shift_configuration("shift", RAISED, LOWERED))
    platform.new_run().run(NOW - 60)
    reset(platform, 10)
    platform.script.places = 1
    return platform


def outcome(platform: ShiftPlatform) -> tuple[object, ...]:
    return (
        platform.api.floor(RAISED),
        platform.api.floor(LOWERED),
        platform.api.quota(),
        (platform.ceiling() or {})["places"],
    )


def reset(platform: ShiftPlatform, accelerators: int) -> None:
    """One floor has to go up, another down."""
    platform.api.objects[f"scaledobjects/{RAISED.name}"]["spec"]["minReplicaCount"] = 3
    platform.api.objects[f"scaledobjects/{LOWERED.name}"]["spec"]["minReplicaCount"] = 9
    platform.script.accelerators = accelerators


@pytest.mark.parametrize(
    "lasts", [False, pytest.param(True, marks=pytest.mark.faults)], ids=["once", "from-then-on"]
)
@pytest.mark.parametrize("breaks", [throttled, timed_out, killed])
def test_each_call_fails(
    aws_in_process: None, breaks: Callable[[str], BaseException], *, lasts: bool
) -> None:
    platform = prepared()
    run = platform.new_run()
    run.run(NOW)
    faults = Faults(breaks, first=0, lasts=False)
    reset(platform, 10)
    with broken(faults):
        run.run(NOW + 60)
    wanted, number, at = outcome(platform), faults.calls, NOW + 60
    assert wanted == (6, 6, 10, 2)
    assert number >= 12
    for call in range(1, number + 1):
        at += 180
        platform.script.accelerators = 2
        run.run(at - 60)
        reset(platform, 10)
        with broken(Faults(breaks, first=call, lasts=lasts)), suppress(KilledError):
            run.run(at)
        lent = platform.api.quota() > 2 or platform.api.floor(LOWERED) < 9
        assert not lent or platform.api.floor(RAISED) == 6, f"call {call}: lent before that"
        run.run(at + 60)
        assert outcome(platform) == wanted, f"call {call}: the next run completes it"


def test_a_lost_table_lends_nothing_and_raises_floors(aws_in_process: None) -> None:
    platform = prepared()
    boto3.client("dynamodb").delete_table(TableName="operations")
    result = platform.new_run().run(NOW)
    assert platform.api.floor(RAISED) == 6
    assert platform.api.floor(LOWERED) == 9
    assert platform.api.quota() == 8
    assert (platform.ceiling() or {})["places"] == 0
    assert platform.script.seen[-1][3].freeze == "unknown"
    assert len(result.failed) == 2


def test_metrics_that_are_away_are_told_to_the_decision(aws_in_process: None) -> None:
    platform = prepared()
    platform.series.fault = MetricsError("away")
    result = platform.new_run().run(NOW)
    assert platform.script.seen[-1][0] == {}
    assert not result.metrics_are_read
