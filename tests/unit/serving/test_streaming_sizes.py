"""Sizes of streaming jobs: Little's law, and what decides the number of KPUs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming import (
    broker_load,
    dead_letter_bytes,
    dead_letter_load,
    job_size,
    max_calls_per_kpu,
    needed_brokers,
    stream_load,
)
from inference_blueprints.spec.types import StreamingJob


@pytest.fixture
def shipped_job() -> StreamingJob:
    [found] = load_blueprint("streaming-g6e").blueprint.spec.streaming
    return found


def changed(job: StreamingJob, **sections: dict[str, Any]) -> StreamingJob:
    """Return a job with other values in some of its sections."""
    update = {name: getattr(job, name).model_copy(update=values) for name, values in sections.items()}
    return job.model_copy(update=update)


def test_calls_in_flight_are_calls_per_second_times_seconds(shipped_job: StreamingJob) -> None:
    job = changed(
        shipped_job,
        session={"debounce_millis": 0},
        load={"events_per_second": 200_000.0, "latency_millis": 300},
    )
    load = stream_load(job)
    assert load.calls_per_second == 200_000
    assert load.in_flight == pytest.approx(60_000)
    assert job_size(job).max_in_flight >= 2 * 60_000


def test_a_longer_debounce_makes_fewer_calls(shipped_job: StreamingJob) -> None:
    # 12 events in 300 s are one in 25 s: with a debounce of 25 s, a prompt holds two events.
    load = stream_load(changed(shipped_job, session={"debounce_millis": 25_000}))
    assert load.calls_per_second == pytest.approx(load.events_per_second / 2)


def test_sessions_stay_open_until_their_gap_has_passed(shipped_job: StreamingJob) -> None:
    load = stream_load(shipped_job)
    assert load.sessions_per_second == pytest.approx(20 / 12)
    assert load.open_sessions == pytest.approx(20 / 12 * (300 + 1800))
    assert load.stored_signals == pytest.approx(20 / 12 * (300 + 3600))


@pytest.mark.parametrize(
    ("sections", "decides"),
    [
        ({"load": {"events_per_second": 100_000.0}}, "cpu_kpus"),
        (
            {
                "load": {"events_per_second": 1000.0, "latency_millis": 60_000},
                "prompt": {"max_input_tokens": 100_000},
            },
            "in_flight_kpus",
        ),
        (
            {
                "load": {"events_per_second": 20_000.0, "events_per_session": 1000.0, "session_seconds": 8e4},
                "session": {"gap_seconds": 86_400, "max_events": 1000, "debounce_millis": 60_000},
                "prompt": {"max_input_tokens": 50_000},
            },
            "state_kpus",
        ),
    ],
)
def test_the_scarcest_resource_decides(
    shipped_job: StreamingJob, sections: dict[str, dict[str, Any]], decides: str
) -> None:
    size = job_size(changed(shipped_job, **sections))
    needs = {name: getattr(size, name) for name in ("cpu_kpus", "in_flight_kpus", "state_kpus")}
    assert max(needs, key=lambda name: needs[name]) == decides
    assert size.kpus - 1 < needs[decides] <= size.kpus
    assert size.parallelism == size.kpus


def test_subtasks_of_the_blueprint_share_kpus(shipped_job: StreamingJob) -> None:
    size = job_size(shipped_job.model_copy(update={"parallelism": 4}))
    assert (size.kpus, size.parallelism, size.parallelism_per_kpu) == (1, 4, 4)
    size = job_size(shipped_job.model_copy(update={"parallelism": 20}))
    assert (size.kpus, size.parallelism, size.parallelism_per_kpu) == (3, 20, 8)


def test_a_kpu_is_half_busy_with_what_it_carries(shipped_job: StreamingJob) -> None:
    job = changed(shipped_job, session={"debounce_millis": 0})
    cost = catalog.job_load()
    each = cost.microseconds_per_call + cost.microseconds_per_event
    assert max_calls_per_kpu(job) * each == pytest.approx(500_000)
    rate = max_calls_per_kpu(job)
    full = changed(shipped_job, session={"debounce_millis": 0}, load={"events_per_second": rate})
    assert job_size(full).cpu_kpus == pytest.approx(1)


def test_a_topic_has_four_partitions_for_each_1400_calls_and_at_least_twelve(
    shipped_job: StreamingJob,
) -> None:
    """More partitions move keys, so these numbers are those of topics that are deployed."""

    def partitions(events: float, parallelism: int | None = None) -> int:
        at_once = changed(shipped_job, session={"debounce_millis": 0}, load={"events_per_second": events})
        return job_size(at_once.model_copy(update={"parallelism": parallelism})).partitions

    # 17 us for an event and 340 us for its call, of 500,000 us: 1,400.56 calls per second.
    assert [partitions(each) for each in (20, 4_200, 4_202, 10_000)] == [12, 12, 16, 32]
    assert (partitions(20, parallelism=2), partitions(20, parallelism=20)) == (12, 80)
    assert job_size(changed(shipped_job, events={"partitions": 5})).partitions == 5


@pytest.mark.parametrize("debounce", [0, 1_000, 60_000])
@pytest.mark.parametrize("events", [100.0, 20_000.0, 120_000.0])
def test_a_topic_without_stated_partitions_has_one_for_each_subtask(
    shipped_job: StreamingJob, events: float, debounce: int
) -> None:
    size = job_size(
        changed(
            shipped_job,
            session={"debounce_millis": debounce},
            load={"events_per_second": events, "events_per_session": 1000.0},
        )
    )
    assert size.partitions >= size.parallelism


def test_a_new_measurement_changes_the_job_and_not_its_topic(
    shipped_job: StreamingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = changed(shipped_job, load={"events_per_second": 20_000.0})
    before, cost = job_size(job), catalog.job_load()
    slower = replace(
        cost,
        microseconds_per_event=2 * cost.microseconds_per_event,
        microseconds_per_call=2 * cost.microseconds_per_call,
    )
    monkeypatch.setattr(catalog, "job_load", lambda: slower)
    after = job_size(job)
    assert after.cpu_kpus == pytest.approx(2 * before.cpu_kpus)
    assert after.parallelism > before.parallelism
    assert after.partitions == before.partitions >= after.parallelism


def test_state_fills_half_of_the_50_gb_of_each_kpu(shipped_job: StreamingJob) -> None:
    """The other half is for the files that a checkpoint copies."""
    job = changed(
        shipped_job,
        load={"events_per_second": 20_000.0, "events_per_session": 1000.0, "session_seconds": 8e4},
        session={"gap_seconds": 86_400, "max_events": 1000, "debounce_millis": 60_000},
        prompt={"max_input_tokens": 50_000},
    )
    size, state = job_size(job), stream_load(job).state_bytes
    assert size.state_kpus == pytest.approx(state / 25e9)
    assert size.kpus == math.ceil(state / 25e9) > 1


def test_a_topic_of_two_jobs_is_written_once_and_read_twice(shipped_job: StreamingJob) -> None:
    one = broker_load([shipped_job])
    other = shipped_job.model_copy(update={"name": "other"})
    both = broker_load([shipped_job, other])
    assert both.ingress_mb_per_second == one.ingress_mb_per_second
    assert both.egress_mb_per_second == pytest.approx(2 * one.egress_mb_per_second)
    assert both.stored_gb == one.stored_gb
    # Three replicas of three partitions: the other job has dead letters of its own.
    assert both.partitions == one.partitions + 9


def test_brokers_are_added_in_threes(shipped_job: StreamingJob) -> None:
    size = catalog.broker_sizes()["express.m7g.large"]
    # 108 bytes and 70 beside them; three brokers carry 46.8 MB/s.
    enough = 3 * size.ingress_mb_per_second * 1e6 / 178
    for events, brokers in ((enough, 3), (enough * 1.01, 6)):
        load = broker_load(
            [changed(shipped_job, load={"events_per_second": events}, events={"partitions": 48})]
        )
        assert needed_brokers(load, size) == brokers


def test_sizes_of_brokers_grow() -> None:
    sizes = list(catalog.broker_sizes().values())
    for smaller, larger in pairwise(sizes):
        assert smaller.ingress_mb_per_second < larger.ingress_mb_per_second
        assert smaller.egress_mb_per_second < larger.egress_mb_per_second
        assert smaller.partitions <= larger.partitions


def test_shards_divide_the_load_and_the_partitions(shipped_job: StreamingJob) -> None:
    """At 200,000 calls per second, one application needs more than the quota of 64 KPUs."""
    peak = changed(
        shipped_job,
        session={"debounce_millis": 0},
        load={"events_per_second": 200_000.0, "latency_millis": 300},
    )
    whole, parts = job_size(peak), job_size(peak.model_copy(update={"shards": 4}))
    assert whole.kpus > 64 >= parts.kpus
    assert whole.kpus <= parts.all_kpus < whole.kpus + 4
    assert parts.partitions % 4 == 0
    assert parts.partitions >= whole.partitions
    assert parts.max_in_flight * 4 >= 2 * 60_000
    assert broker_load([peak.model_copy(update={"shards": 4})]).connections == 2 * 4 * parts.parallelism


def test_topics_share_the_events_of_a_job(shipped_job: StreamingJob) -> None:
    two = changed(shipped_job, events={"more_topics": ["carts"]})
    one, both = broker_load([shipped_job]), broker_load([two])
    assert both.ingress_mb_per_second == pytest.approx(one.ingress_mb_per_second)
    assert both.stored_gb == pytest.approx(one.stored_gb)
    assert both.partitions - one.partitions == 3 * job_size(two).partitions


def test_dead_letters_are_sized_for_a_model_that_stays_away(shipped_job: StreamingJob) -> None:
    # 2,000 tokens of four bytes, the system message, the schema and the letter's own fields.
    assert 8_500 < dead_letter_bytes(shipped_job) < 9_000
    sessions = stream_load(shipped_job).sessions_per_second
    waiting = sessions * (1 + 300 / 900) * dead_letter_bytes(shipped_job)
    assert dead_letter_load(shipped_job) == pytest.approx(waiting)
    at_once = shipped_job.model_copy(update={"max_age_seconds": 0})
    calls = stream_load(shipped_job).calls_per_second
    assert dead_letter_load(at_once) == pytest.approx(calls * dead_letter_bytes(shipped_job))
    large = changed(shipped_job, prompt={"max_input_tokens": 1_000_000})
    assert dead_letter_load(large) == pytest.approx(sessions * (1 + 300 / 900) * 1_040_000)
