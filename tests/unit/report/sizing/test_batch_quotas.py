"""What 300 million requests a day take of each quota, by arithmetic of its own."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.plan.sections.batch import summarise_days
from inference_blueprints.report.sizing.batch_day import BatchDay, batch_days
from inference_blueprints.report.sizing.batch_quotas import (
    ServiceQuotaUse,
    refuse_exceeded,
    service_quota_uses,
)
from inference_blueprints.serving.way_capacity import ModelCapacity
from inference_blueprints.spec.types import Batch, Model
from inference_contracts.errors import UserError

DAY = 24 * 60 * 60
REFERENCE = BatchDay(
    queue="nightly",
    model="captions",
    requests=300_000_000,
    requests_per_job=2_500_000,
    input_tokens=2000,
    output_tokens=150,
    deadline_hours=24,
    workers=100,
    publishes=True,
)


def uses(*days: BatchDay, region: str = "us-west-2") -> dict[str, ServiceQuotaUse]:
    return {use.name: use for use in service_quota_uses(days, region)}


def used(*days: BatchDay) -> dict[str, float]:
    return {name: use.used for name, use in uses(*days).items()}


def test_the_reference_day_is_cut_as_the_design_cuts_it() -> None:
    assert REFERENCE.jobs == 120
    # 8,300 bytes a line: 2.5 million are 20.75 GB, in pieces of 67,108,864.
    assert REFERENCE.segments_of_a_job == 310
    # A segment's 8,086 lines are 17.4 million tokens: two full shards. With a KiB for each they are 75 MB, so
    # two runs, each with a last shard of each of three lengths.
    assert REFERENCE.shards_of_a_job == 310 * (2 + 2 * 3)


def test_each_quota_of_the_reference_day() -> None:
    jobs, segments, shards, places = 120, 37_200, 297_600, 400
    published = shards
    found = used(REFERENCE)
    check_seconds = 8086 / 10_000 + 8086 * 8300 / (49 * 1024 * 1024)
    join_seconds = 2_500_000 * (150 * 4 + 700) / (37 * 1024 * 1024)
    publish_seconds = 300_000_000 / shards / 10_000
    # Seven rounds of fifty segments a job are half an hour a day altogether: one job is checked at once.
    assert jobs * 7 * check_seconds < DAY
    expected = {
        "states.openExecutions": jobs + places + 50,
        "states.openMapRuns": jobs + 1,
        "states.mapConcurrency": places,
        "states.childStarts": shards / DAY,
        "states.historyEvents": 8 + 4 * 360,
        "states.payload": 2480 * 3,
        "states.transitions": (jobs * 17 + 2 * (segments + shards + published)) / DAY,
        "states.startExecution": (jobs + segments + shards + published) / DAY,
        "states.sendTaskSuccess": (jobs + shards) / DAY,
        "states.sendTaskHeartbeat": places / 30 + shards / DAY,
        "states.updateMapRun": 50 / 60,
        "sqs.inFlight": places,
        "lambda.concurrency": 552 + max((shards * publish_seconds + jobs * join_seconds) / DAY, 100),
        "lambda.timeout": join_seconds,
        "s3.writes": places
        + 300_000_000 / DAY * 1300 / 4_194_304
        + 4 * shards / DAY
        + (3 * segments + shards) / DAY,
        "s3.parts": 2480,
        "dynamodb.writes": (jobs * 10 / DAY + jobs / 60) * 6 + places / 30 + shards / DAY,
        "dynamodb.reads": jobs / 4 + 2480 / 20,
        "apigateway.requests": (300_000_000 * 8300 / 4_194_304 + jobs * 10) / DAY + jobs / 60,
        "events.invocations": jobs * 4 / DAY + 1 / 60,
        "elasticache.ecpu": 300_000_000 / DAY * (3 + 1),
    }
    expected["s3.reads"] = expected["s3.writes"] + places + 300_000_000 / DAY * 1300 / 4_194_304
    expected["elasticache.emptyEcpu"] = expected["elasticache.ecpu"]
    assert found == pytest.approx(expected)
    assert set(found) == set(catalog.service_quotas())


def test_the_reference_day_fits() -> None:
    for region in ("us-west-2", "eu-south-1"):
        found = uses(REFERENCE, region=region).values()
        assert [use.name for use in found if use.is_exceeded] == []
        refuse_exceeded(found)


@pytest.mark.parametrize("name", sorted(catalog.service_quotas()))
def test_a_quota_is_enough_when_it_is_just_reached(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = catalog.service_quotas()
    taken = uses(REFERENCE)[name].used

    def with_value(value: float) -> list[ServiceQuotaUse]:
        changed = dataclasses.replace(quotas[name], value=value, regions=None)
        monkeypatch.setattr(catalog, "service_quotas", lambda: {**quotas, name: changed})
        return list(service_quota_uses([REFERENCE], "us-west-2"))

    reached = with_value(taken)
    assert not any(use.is_exceeded for use in reached)
    refuse_exceeded(reached)
    below = with_value(math.nextafter(taken, 0))
    assert [use.name for use in below if use.is_exceeded] == [name]
    if quotas[name].adjustable:
        refuse_exceeded(below)
    else:
        with pytest.raises(UserError, match="exceeds quotas that AWS does not raise") as refusal:
            refuse_exceeded(below)
        assert f"{quotas[name].service}, {quotas[name].quota}: " in str(refusal.value)


@pytest.mark.parametrize(
    ("quota", "fits", "exceeds"),
    [
        # Four shards a worker.
        ("sqs.inFlight", {"workers": 30_000}, {"workers": 30_001}),
        ("states.mapConcurrency", {"workers": 2500}, {"workers": 2501}),
        # 6,248 silences of 240 s.
        ("states.historyEvents", {"deadline_hours": 416.5}, {"deadline_hours": 416.6}),
        # 87,381 children of 3 bytes are 262,143: 10,923 segments of 8 shards each are more.
        ("states.payload", {"requests_per_job": 88_000_000}, {"requests_per_job": 89_000_000}),
        # 1,250 segments of 8 shards.
        ("s3.parts", {"requests_per_job": 10_000_000}, {"requests_per_job": 10_200_000}),
        # A commit a second for each shard in work, as long as a request comes each second for each.
        ("s3.writes", {"workers": 860}, {"workers": 10_000, "requests": 400_000_000}),
        ("elasticache.emptyEcpu", {"requests": 648_000_000}, {"requests": 648_000_100}),
    ],
)
def test_a_larger_day_exceeds_it(quota: str, fits: dict[str, Any], exceeds: dict[str, Any]) -> None:
    assert not uses(dataclasses.replace(REFERENCE, **fits))[quota].is_exceeded
    assert uses(dataclasses.replace(REFERENCE, **exceeds))[quota].is_exceeded


def test_a_call_stops_joining_in_time_and_the_next_one_continues() -> None:
    # A job of 26,859,678 rows of 1,300 bytes, at 37 MiB/s, takes 900 s altogether.
    large = dataclasses.replace(REFERENCE, requests_per_job=26_859_678)
    assert used(large)["lambda.timeout"] == 8 * 60


def test_a_region_has_quotas_of_its_own() -> None:
    assert uses(REFERENCE, region="us-west-2")["states.transitions"].quota == 5000
    assert uses(REFERENCE, region="eu-west-3")["states.transitions"].quota == 800


def test_two_queues_share_the_workers_of_their_model() -> None:
    half = dataclasses.replace(REFERENCE, requests=150_000_000)
    other = dataclasses.replace(half, queue="urgent")
    assert used(half, other)["sqs.inFlight"] == 400
    assert used(half, other)["states.sendTaskHeartbeat"] == pytest.approx(
        used(REFERENCE)["states.sendTaskHeartbeat"]
    )
    assert used(half, dataclasses.replace(other, model="titles"))["states.sendTaskHeartbeat"] > 26
    assert [day.seconds_per_request for day in summarise_days([half, other], {})] == pytest.approx(
        [51_200 / (300_000_000 / DAY)] * 2
    )


def test_no_more_requests_are_in_flight_than_the_engines_run() -> None:
    """100 workers send 51,200 requests at once; the engines run 64 of them, at 4 requests per second."""
    small = dataclasses.replace(REFERENCE, requests=172_800, requests_per_job=50_000)
    [day] = summarise_days([small], {"nightly": ModelCapacity(64, 4.0)})
    # 172,800 requests a day are 2 per second.
    assert (day.in_flight, day.seconds_per_request) == (64, 32.0)
    assert day.job_hours == pytest.approx(50_000 / 4 / 3600)
    assert (day.deadline_can_hold, day.keeps_up) == (True, True)


@pytest.mark.parametrize(
    ("deadline_hours", "speed", "expected"),
    [(3, 4.0, (False, True)), (24, 1.0, (True, False)), (3, None, (None, None))],
)
def test_a_deadline_holds_if_the_model_is_fast_enough(
    deadline_hours: float, speed: float | None, expected: tuple[bool | None, bool | None]
) -> None:
    small = dataclasses.replace(
        REFERENCE, requests=172_800, requests_per_job=50_000, deadline_hours=deadline_hours
    )
    [day] = summarise_days([small], {"nightly": ModelCapacity(64, speed)})
    assert (day.deadline_can_hold, day.keeps_up) == expected


def test_a_job_is_no_faster_than_the_requests_that_workers_send_at_once() -> None:
    """A model of 1,000 requests per second read as all of them, where 64 at once of 4 s each are 16."""
    small = dataclasses.replace(REFERENCE, requests=172_800, requests_per_job=50_000)
    [day] = summarise_days([small], {"nightly": ModelCapacity(64, 1000.0, 900.0, 4.0)})
    assert (day.full_requests_per_second, day.planned_requests_per_second) == (16.0, 16.0)
    assert day.job_hours == day.planned_job_hours == pytest.approx(50_000 / 16 / 3600)


def test_streaming_jobs_of_the_model_count_towards_its_load() -> None:
    small = dataclasses.replace(REFERENCE, requests=172_800, requests_per_job=50_000)
    [day] = summarise_days([small], {"nightly": ModelCapacity(64, 4.0)}, {"captions": 3.0})
    assert (day.load_requests_per_second, day.keeps_up) == (5.0, False)


def test_without_a_signal_store_nothing_is_written_there() -> None:
    silent = dataclasses.replace(REFERENCE, publishes=False)
    assert not any(name.startswith("elasticache") for name in used(silent))
    assert used(silent)["states.startExecution"] == pytest.approx((120 + 37_200 + 297_600) / DAY)


def test_no_day_takes_nothing() -> None:
    assert service_quota_uses([], "us-west-2") == ()


def test_queues_that_declare_no_load_have_no_day() -> None:
    rates = {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1}
    load = {"requestsPerDay": 1000}
    batch = Batch.model_validate(
        {
            "queues": [
                {"name": "a", "model": "m", "rates": rates},
                {"name": "b", "model": "m", "rates": rates, "load": load, "deadlineHours": 3},
            ],
            "workers": {"max": 7},
        }
    )
    workload = {"inputTokens": 5, "outputTokens": 6, "peakRequestsPerSecond": 1}
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
    model = Model.model_validate(
        {
            "name": "m",
            "weights": {"huggingFace": "Qwen/Qwen3-8B"},
            "workload": workload,
            "deployments": [{"name": "main", "aggregated": workers}],
        }
    )
    spec = load_blueprint("quickstart-g6e").blueprint.spec.model_copy(update={"models": [model]})
    assert batch_days(spec, batch) == (
        BatchDay("b", "m", 1000, 1000, 5, 6, 7, publishes=False, deadline_hours=3),
    )


def test_long_prompts_fill_a_worker_s_memory_before_its_requests() -> None:
    # A prompt of 100,000 tokens is 400 KB, which a worker holds three times: 223 lines in 256 MiB.
    long = dataclasses.replace(REFERENCE, input_tokens=100_000, workers=1)
    (day,) = summarise_days([long], {})
    assert day.in_flight == 256 * 2**20 // (3 * (400_000 + 300))
    assert day.in_flight == 223
