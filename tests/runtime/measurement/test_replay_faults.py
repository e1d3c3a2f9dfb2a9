"""A replay against an endpoint that misbehaves: every request is accounted for, with its reason."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from inference_blueprints.measure.completions import completion_client as replay_client
from inference_blueprints.measure.replay.open_loop import UNREACHABLE_IN_A_ROW, ReplayProgress
from inference_blueprints.measure.replay.scaled_trace import ReplayError
from inference_blueprints.measure.replay.trace_replay import ReplayResult, replay_async
from inference_blueprints.spec.types import Workload
from tests.runtime.measurement.fake_endpoint import TEMPLATE_TOKENS, FakeEndpoint, serving
from tests.runtime.measurement.standing_clock import StandingClock, standing_clock

WORKLOAD = Workload(input_tokens=120, output_tokens=8, peak_requests_per_second=40.0)
CONTEXT = 2048
#: Nobody waits for them.
SECONDS = 0.5
REQUESTS = 20


async def replayed(endpoint: FakeEndpoint, **options: Any) -> ReplayResult:
    options = {"seconds": SECONDS, "seed": 1} | options
    return await replay_async(endpoint.base_url, "qwen", WORKLOAD, CONTEXT, **options)


def replay_with(faults: list[str], **options: Any) -> tuple[ReplayResult, FakeEndpoint]:
    settings = options.pop("settings", {})

    async def run(clock: StandingClock) -> tuple[ReplayResult, FakeEndpoint]:
        async with serving(faults=faults, wait=clock.sleep, **settings) as endpoint:
            return await replayed(endpoint, **options), endpoint

    with standing_clock() as clock:
        return asyncio.run(run(clock))


def replay_that_hangs(hanging: int, **options: Any) -> tuple[ReplayResult, FakeEndpoint]:
    """Replay to an endpoint at which requests hang, until nothing else is left to wait for."""
    seen: list[ReplayProgress] = []

    async def run(clock: StandingClock) -> tuple[ReplayResult, FakeEndpoint]:
        async with serving(faults=["hang"] * hanging) as endpoint:

            async def give_up() -> None:
                while not (
                    seen and seen[-1].done == REQUESTS - hanging and len(endpoint.bodies) > seen[-1].in_flight
                ):
                    await asyncio.sleep(0)
                clock.pass_by(3600.0)

            giving_up = asyncio.create_task(give_up())
            result = await replayed(
                endpoint, on_progress=seen.append, request_timeout_seconds=600.0, **options
            )
            await giving_up
            return result, endpoint

    with standing_clock() as clock:
        return asyncio.run(run(clock))


def test_a_healthy_endpoint_gets_the_workload_it_was_promised() -> None:
    result, endpoint = replay_with([])
    assert len(result.outcomes) == REQUESTS
    assert result.failure_reasons == {}
    assert result.template_tokens == TEMPLATE_TOKENS
    usages = [outcome.usage for outcome in result.outcomes if outcome.usage]
    assert len(usages) == REQUESTS
    assert sum(usage.prompt_tokens for usage in usages) / REQUESTS == pytest.approx(
        WORKLOAD.input_tokens, abs=1
    )
    assert sum(usage.completion_tokens for usage in usages) == sum(
        request.output_tokens for request in result.scaled.requests
    )
    for body in endpoint.bodies:
        assert body["max_tokens"] == body["min_tokens"]
        assert body["ignore_eos"] is True
        assert body["stream_options"] == {"include_usage": True}
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("fault", "reason", "detail"),
    [
        ("http 500", "HTTP 500", "the worker is gone"),
        ("reset", replay_client.BROKEN, ""),
        ("malformed", replay_client.MALFORMED, "{not json"),
        ("wrong shape", replay_client.MALFORMED, "delta"),
        ("error event", replay_client.REPORTED, "no worker left"),
        ("error object", replay_client.REPORTED, "out of blocks"),
        ("no done", replay_client.CUT_SHORT, ""),
        ("no tokens", replay_client.NO_TOKENS, ""),
    ],
)
def test_each_fault_is_counted_under_its_own_reason(fault: str, reason: str, detail: str) -> None:
    result, _ = replay_with([fault, "", fault, ""])
    assert result.failure_reasons == {reason: 2}
    assert len(result.answered) == REQUESTS - 2
    failed = [outcome for outcome in result.outcomes if outcome.failure]
    assert all(detail in outcome.failure_detail for outcome in failed)


def test_different_faults_in_one_replay_are_told_apart() -> None:
    faults = ["http 500", "reset", "malformed", "http 500", "", "no done"]
    result, _ = replay_with(faults)
    assert Counter(result.failure_reasons) == {
        "HTTP 500": 2,
        replay_client.BROKEN: 1,
        replay_client.MALFORMED: 1,
        replay_client.CUT_SHORT: 1,
    }


def test_an_endpoint_that_answers_only_errors_is_reported_to_the_end() -> None:
    result, _ = replay_with(["http 500"] * REQUESTS)
    assert result.failure_reasons == {"HTTP 500": REQUESTS}
    assert result.answered == ()


def test_a_slow_first_token_shows_in_the_time_to_first_token_only() -> None:
    slow = 0.4
    result, _ = replay_with(["slow"] + [""] * REQUESTS, settings={"first_token_seconds": slow})
    first = result.outcomes[0]
    assert first.time_to_first_token_ms is not None
    assert first.end_to_end_ms is not None
    assert first.time_per_output_token_ms is not None
    assert first.time_to_first_token_ms >= slow * 1000
    assert first.end_to_end_ms >= first.time_to_first_token_ms
    assert first.time_per_output_token_ms < slow * 1000


def test_answers_without_token_counts_are_answers_and_warned_about() -> None:
    result, _ = replay_with(["no usage", "no usage"])
    assert result.failure_reasons == {}
    assert sum(outcome.usage is None for outcome in result.outcomes) == 2
    assert any("2 answers had no token counts" in warning for warning in result.warnings)


def test_a_request_that_never_ends_is_given_up() -> None:
    result, _ = replay_that_hangs(1)
    assert result.failure_reasons == {replay_client.TIMED_OUT: 1}


def test_hanging_requests_fill_the_room_and_the_next_ones_count_as_not_sent() -> None:
    sent = UNREACHABLE_IN_A_ROW - 1
    result, endpoint = replay_that_hangs(sent, in_flight_limit=sent)
    assert result.failure_reasons[replay_client.TIMED_OUT] == sent
    assert sum(result.failure_reasons.values()) == REQUESTS
    assert len(endpoint.bodies) == sent + 1


def test_nobody_listening_is_said_at_once() -> None:
    async def run() -> None:
        async with serving() as endpoint:
            base_url = endpoint.base_url
        with pytest.raises(ReplayError, match=rf"{base_url} did not answer .*{replay_client.REFUSED}"):
            await replay_async(base_url, "qwen", WORKLOAD, CONTEXT, seconds=SECONDS)

    asyncio.run(run())


def test_an_endpoint_that_dies_ends_the_replay_early() -> None:
    endings: list[asyncio.Task[None]] = []

    async def run() -> None:
        async with serving() as endpoint:

            def stop_after_three(progress: ReplayProgress) -> None:
                if progress.done == 3 and not endings:
                    endings.append(asyncio.get_running_loop().create_task(endpoint.stop()))

            with pytest.raises(
                ReplayError, match=r"the endpoint stopped answering after \d+ of 918 requests"
            ):
                await replay_async(
                    endpoint.base_url,
                    "qwen",
                    WORKLOAD,
                    CONTEXT,
                    seconds=3600.0,
                    on_progress=stop_after_three,
                )

    with standing_clock():
        asyncio.run(run())


def test_cancelling_a_replay_leaves_no_request_behind() -> None:
    async def run() -> None:
        async with serving(faults=["hang"] * REQUESTS) as endpoint:
            replaying = asyncio.create_task(replayed(endpoint))
            while len(endpoint.bodies) < 3:
                await asyncio.sleep(0)
            replaying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await replaying
            ours = [task for task in asyncio.all_tasks() if "_send_one" in repr(task)]
            assert ours == []

    with standing_clock():
        asyncio.run(run())


def test_the_progress_is_told_from_the_first_request_to_the_last() -> None:
    seen: list[ReplayProgress] = []

    async def run() -> ReplayResult:
        async with serving() as endpoint:
            return await replay_async(
                f"{endpoint.base_url}/v1/",
                "qwen",
                WORKLOAD,
                CONTEXT,
                seconds=SECONDS,
                on_progress=seen.append,
            )

    with standing_clock():
        assert asyncio.run(run()).failure_reasons == {}
    assert {progress.total for progress in seen} == {REQUESTS}
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert (seen[-1].done, seen[-1].in_flight) == (REQUESTS, 0)
