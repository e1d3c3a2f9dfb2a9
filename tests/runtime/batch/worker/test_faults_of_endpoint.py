"""An endpoint that refuses, breaks, drips and lies: every line ends with its answer, or with a reason."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from batch.worker.suspects import PROBE_KEY
from inference_blueprints.resources import root
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.fake_endpoint import (
    Asked,
    Behaviour,
    after,
    drip,
    reset,
    status,
    truncated,
    well,
)
from tests.runtime.batch.worker.jobs import BUCKET, Job, lines, put_job, wait_until

pytestmark = pytest.mark.faults

IN_FLIGHT = {"BATCH_IN_FLIGHT_START": "16", "BATCH_IN_FLIGHT_MOST": "16"}
POISON = "13"


def run(stage: Stage, job: Job, **environment: str) -> None:
    execution = stage.submit(job)
    stage.start(IN_FLIGHT | environment)
    assert stage.wait(execution)["status"] == "SUCCEEDED"


def at_first(behaviour: Behaviour, times: int = 1) -> Behaviour:
    """Fail with every line's first requests."""

    async def then_well(asked: Asked) -> web.StreamResponse:
        return await (behaviour if asked.attempt < times else well)(asked)

    return then_well


def now_and_then(behaviour: Behaviour, every: int) -> Behaviour:
    async def mostly_well(asked: Asked) -> web.StreamResponse:
        return await (behaviour if asked.number % every == 0 else well)(asked)

    return mostly_well


def within_seconds_of_the_first(seconds: float) -> Callable[[], bool]:
    """Return what says whether so much time has passed since it was first asked."""
    begin: list[float] = []

    def is_over() -> bool:
        begin.append(time.monotonic())
        return begin[-1] >= begin[0] + seconds

    return is_over


def with_poison(behaviour: Behaviour) -> Behaviour:
    async def poisoned(asked: Asked) -> web.StreamResponse:
        return await (behaviour if asked.prompt == POISON else well)(asked)

    return poisoned


@pytest.mark.parametrize(
    "fault",
    [reset, truncated, status(500), status(502), status(408), status(404)],
    ids=["reset", "truncated", "500", "502", "408", "404"],
)
def test_what_breaks_now_and_then_is_asked_again(stage: Stage, s3: Any, fault: Behaviour) -> None:
    stage.endpoint.behaviour = now_and_then(fault, every=10)
    job = put_job(s3, {"00000": lines(100)})
    run(stage, job)
    job.check()
    done = job.done()
    assert done is not None
    # It also makes sure that the endpoint is there, by small requests of its own.
    assert done["attempts"] == stage.endpoint.number - stage.endpoint.asked[PROBE_KEY] > 100


def test_a_storm_of_429_is_waited_for_and_then_made_up(stage: Stage, s3: Any) -> None:
    is_over = within_seconds_of_the_first(6)

    async def storm(asked: Asked) -> web.StreamResponse:
        return await (after(0.05) if is_over() else status(429, Retry_After="1"))(asked)

    stage.endpoint.behaviour = storm
    job = put_job(s3, {"00000": lines(400)})
    run(stage, job)
    job.check()
    done = job.done()
    assert done is not None
    # Refusals were few: it paused when it was told to, and did not try all lines over and over.
    assert 400 < done["attempts"] < 400 + 100
    assert stage.endpoint.max_in_flight <= 16


def test_retry_after_holds_back_every_line(stage: Stage, s3: Any) -> None:
    arrivals: list[float] = []

    async def first_refused(asked: Asked) -> web.StreamResponse:
        arrivals.append(time.monotonic())
        return await (status(429, Retry_After="3") if asked.number < 4 else well)(asked)

    stage.endpoint.behaviour = first_refused
    job = put_job(s3, {"00000": lines(40)})
    run(stage, job, BATCH_IN_FLIGHT_START="4", BATCH_IN_FLIGHT_MOST="4")
    job.check()
    gaps = [later - earlier for earlier, later in itertools.pairwise(arrivals)]
    assert max(gaps[2:5]) > 2.5


def test_a_burst_of_500_fails_no_line(stage: Stage, s3: Any) -> None:
    is_over = within_seconds_of_the_first(5)

    async def burst(asked: Asked) -> web.StreamResponse:
        return await (well if is_over() else status(500))(asked)

    stage.endpoint.behaviour = burst
    job = put_job(s3, {"00000": lines(200)})
    run(stage, job)
    job.check()


def test_a_slow_drip_does_not_outlive_the_request(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = at_first(drip)
    job = put_job(s3, {"00000": lines(8)})
    run(stage, job, BATCH_REQUEST_SECONDS="5")
    job.check()
    assert min(stage.endpoint.asked.values()) >= 2


@pytest.mark.parametrize("fault", [reset, truncated, status(500), drip], ids=["reset", "cut", "500", "drip"])
def test_a_line_that_breaks_the_endpoint_is_given_up(stage: Stage, s3: Any, fault: Behaviour) -> None:
    answered = broken = 0

    async def poisoned(asked: Asked) -> web.StreamResponse:
        nonlocal answered, broken
        if asked.prompt != POISON:
            answered += 1
            return await after(0.25 if broken < 2 else 0.0)(asked)
        # Others are answered meanwhile, or it would be an outage: more of them than are in flight.
        begin = answered
        while answered < begin + 3 * 16:
            await asyncio.sleep(0.02)
        try:
            return await fault(asked)
        finally:
            broken += 1

    stage.endpoint.behaviour = poisoned
    job = put_job(s3, {"00000": lines(100), "00001": lines(2000, "more/")})
    run(stage, job, BATCH_ATTEMPTS="2", BATCH_REQUEST_SECONDS="5")
    job.check(failed=["line-13"])
    _, (error,) = job.rows()
    if fault is not drip and error["response"] is None:
        assert error["error"]["code"] == "endpoint_error"
    assert stage.endpoint.asked.most_common(1)[0][1] >= 2


def test_a_request_that_is_bad_is_asked_once(stage: Stage, s3: Any) -> None:
    words = {
        "error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
    }
    stage.endpoint.behaviour = with_poison(status(400, words))
    job = put_job(s3, {"00000": lines(30)})
    run(stage, job)
    job.check(failed=["line-13"])
    _, (error,) = job.rows()
    assert (error["response"]["status_code"], error["response"]["body"], error["error"]) == (400, words, None)
    assert set(stage.endpoint.asked.values()) == {1}


def test_an_answer_of_many_lines_is_one_row(stage: Stage, s3: Any) -> None:
    async def pretty(asked: Asked) -> web.StreamResponse:
        plain = await well(asked)
        assert isinstance(plain, web.Response)
        assert isinstance(plain.body, bytes)
        return web.Response(text=json.dumps(json.loads(plain.body), indent=2) + "\r\n")

    stage.endpoint.behaviour = pretty
    job = put_job(s3, {"00000": lines(10)})
    run(stage, job)
    job.check()


def test_an_endpoint_that_is_not_there_is_waited_for(stage: Stage, s3: Any) -> None:
    job = put_job(s3, {"00000": lines(50)})
    execution = stage.submit(job)
    worker = stage.start(IN_FLIGHT | {"BATCH_ENDPOINT": "http://127.0.0.1:9", "BATCH_METRICS_SECONDS": "1"})
    wait_until(lambda: worker.logged("shard_taken"), "the shard")
    told = sum("_aws" in event for event in worker.events)
    wait_until(lambda: sum("_aws" in event for event in worker.events) >= told + 3, "some attempts")
    assert job.committed() == []
    # It does not wait for requests that are not in flight.
    worker.stop(seconds=30)
    stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()


def test_lines_without_an_answer_by_the_deadline_have_expired(stage: Stage, s3: Any) -> None:
    async def some(asked: Asked) -> web.StreamResponse:
        return await (well if int(asked.prompt) < 5 else after(600))(asked)

    stage.endpoint.behaviour = some
    # The deadline is for what happens between the worker and the endpoint, not for the start of a process.
    worker = stage.start(IN_FLIGHT)
    wait_until(lambda: worker.logged("started"), "the worker")
    job = put_job(s3, {"00000": lines(40)}, deadline_seconds=15)
    assert stage.wait(stage.submit(job))["status"] == "SUCCEEDED"
    job.check(failed=[f"line-{number}" for number in range(5, 40)])
    _, errors = job.rows()
    assert {error["error"]["code"] for error in errors} == {"batch_expired"}
    # Those that never had a place in flight were not sent.
    assert stage.endpoint.number < 40


def test_the_deadline_is_by_the_clock_of_s3(stage: Stage, s3: Any) -> None:
    """A worker whose clock is a day ahead; what tells it the time is preloaded, as an image's library is."""
    job = put_job(s3, {"00000": lines(20)})
    wrong = stage.directory / "sitecustomize.py"
    wrong.write_text("import time\n_right = time.time\ntime.time = lambda: _right() + 86_400\n")
    execution = stage.submit(job)
    worker = stage.start({"PYTHONPATH": f"{stage.directory}:{root() / 'runtime'}"})
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    worker.stop()
    *_, metrics = (event for event in worker.events if "_aws" in event)
    assert metrics["_aws"]["Timestamp"] / 1000 > time.time() + 80_000, "the clock was wrong indeed"


def test_poison_lines_are_rows_of_the_error_file(stage: Stage, s3: Any) -> None:
    keys = JobKeys("poison").shard("00000")
    job = put_job(s3, {"00000": lines(7)}, name="poison")
    text = [line.to_json().encode() for line in lines(7)]
    text[1] = b'{"ordinal":1,"line":2,"custom_id":"line-1","tok'
    text[3] = text[3][:-1] + b',"unknown":1}'
    text[4] = b'{"ordinal":4,"line":5,"custom_id":"line-4","tokens":1}'
    text[5] = text[5].replace(b'"content":"5"', b'"content":"' + b"x" * (100 * 2**20) + b'"')
    s3.put_object(Bucket=BUCKET, Key=keys.lines, Body=b"\n".join(text))
    run(stage, job)
    job.check(failed=["line-1", "line-3", "line-4", "line-5"])
    _, errors = job.rows()
    assert {error["custom_id"]: error["error"]["code"] for error in errors} == {
        "line-1": "invalid_line",
        "line-3": "invalid_line",
        "line-4": "invalid_line",
        "line-5": "line_too_long",
    }


def test_an_empty_shard_is_done(stage: Stage, s3: Any) -> None:
    job = put_job(s3, {"00000": []})
    run(stage, job)
    job.check()
    assert stage.endpoint.number == 0
