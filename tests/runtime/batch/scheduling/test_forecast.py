"""Expected ends follow from the places, the measured speed and all jobs, and late jobs are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.scheduling.admissions import Admission, Measured
from batch.scheduling.allotment import WaitingOrRunning
from batch.scheduling.forecast import ForecastJob, expected_ends
from batch.scheduling.place_scheduler import Judgement, ModelState, SchedulingCandidate, judge
from tests.runtime.batch.job_records import HOUR, NOW, make_job

PLACES = 8
#: Sixty shards of a minute of the whole model.
WANTED = WaitingOrRunning(
    job="j", team="ads", priority=10, submitted=0.0, deadline=100 * HOUR, shards=60, seconds_per_shard=480.0
)
JOB = ForecastJob(WANTED, model_seconds=60.0)


def ends(*jobs: ForecastJob, speed: float = 1.0) -> dict[str, float]:
    return expected_ends(jobs, PLACES, speed=speed, now=0.0, maximum={})


def named(name: str, job: ForecastJob = JOB, **changes: Any) -> ForecastJob:
    return replace(job, wanted=replace(job.wanted, job=name, **changes))


@pytest.mark.parametrize(("speed", "hours"), [(1.0, 1), (0.5, 2)])
def test_a_job_alone_takes_the_whole_model(speed: float, hours: float) -> None:
    assert ends(JOB, speed=speed) == {"j": pytest.approx(hours * HOUR)}


def test_a_small_job_is_not_slow_because_it_uses_few_places() -> None:
    assert ends(named("small", shards=1)) == {"small": pytest.approx(60)}


def test_a_measured_job_keeps_its_rate() -> None:
    measured = replace(JOB, shards_per_second=1 / 1200)
    assert ends(measured)["j"] == pytest.approx(60 / 8 * 1200, rel=0.1)


def test_a_job_of_higher_rank_makes_another_wait() -> None:
    urgent = named("urgent", priority=90, deadline=HOUR)
    assert ends(urgent, named("other", deadline=HOUR))["other"] > HOUR
    assert ends(urgent, named("other", deadline=HOUR))["urgent"] == pytest.approx(HOUR)


def test_a_job_that_is_stopped_at_its_deadline_frees_its_places() -> None:
    stopped = named("stopped", priority=90, deadline=HOUR / 2)
    found = ends(stopped, JOB)
    assert found["stopped"] > HOUR / 2
    assert found["j"] < 1.6 * HOUR


@given(
    st.lists(
        st.builds(
            ForecastJob,
            st.builds(
                WaitingOrRunning,
                job=st.uuids().map(str),
                team=st.sampled_from(["ads", "search"]),
                priority=st.integers(0, 100),
                submitted=st.floats(-100 * HOUR, 0),
                deadline=st.floats(-HOUR, 100 * HOUR),
                shards=st.integers(0, 50),
                seconds_per_shard=st.floats(1, 2 * HOUR),
                is_running=st.booleans(),
            ),
            model_seconds=st.floats(0.1, HOUR),
            shards_per_second=st.none() | st.floats(1e-6, 1.0),
        ),
        max_size=10,
        unique_by=lambda each: each.wanted.job,
    ),
    st.integers(0, 30),
    st.floats(0.001, 3),
)
def test_every_job_has_a_finite_end(jobs: list[ForecastJob], places: int, speed: float) -> None:
    found = expected_ends(jobs, places, speed=speed, now=0.0, maximum={"ads": 1})
    assert set(found) == {each.wanted.job for each in jobs if each.wanted.shards}
    assert all(0 <= end < float("inf") for end in found.values())


def candidate(job: Job, **changes: Any) -> SchedulingCandidate:
    admission = Admission(job.id, 1, "token", 60, 0, 480.0, 1.0, lines_per_shard=10.0, may_refuse=True)
    return SchedulingCandidate(job, replace(admission, **changes), 60)


def judged(*candidates: SchedulingCandidate, speed: float = 1.0) -> Judgement:
    return judge(candidates, ModelState(PLACES, speed, {}), now=NOW)


def test_a_job_that_fits_into_an_empty_queue_is_refused_behind_another(
    platform_in_process: BatchPlatform,
) -> None:
    job = make_job(platform_in_process, expires_at=NOW + 90 * 60)
    assert judged(candidate(job)).refused == []
    before = candidate(make_job(platform_in_process, priority=90, expires_at=NOW + 90 * 60), places=8)
    (refused,) = judged(before, candidate(job)).refused
    assert "beside 1 other job of the model, it is expected to end at" in refused.admission.refusal


def test_a_job_that_fits_by_the_plan_is_refused_by_the_observed_speed(
    platform_in_process: BatchPlatform,
) -> None:
    job = make_job(platform_in_process, expires_at=NOW + 90 * 60)
    assert judged(candidate(job), speed=0.5).refused != []


@pytest.mark.parametrize(
    ("of_job", "of_admission"),
    [
        ({"accept_late": True}, {}),
        ({"attempt": 2, "state": "in_progress"}, {}),
        ({}, {"may_refuse": False}),
        ({}, {"places": 8}),
        ({}, {"expected_at": NOW}),
    ],
)
def test_these_are_never_refused(
    platform_in_process: BatchPlatform, of_job: dict[str, object], of_admission: dict[str, object]
) -> None:
    """Its team accepts it, or asks again; its execution began before an upgrade; it runs; it was judged."""
    job = make_job(platform_in_process, expires_at=NOW + 60, **of_job)
    found = judged(candidate(job, **of_admission))
    assert found.refused == []
    assert (found.accepted[0].admission.expected_at or 0) > job.expires_at


def test_a_measured_rate_counts_for_the_places_of_a_job(platform_in_process: BatchPlatform) -> None:
    measured = Measured(0, 10, NOW, 1 / 960)
    found = candidate(make_job(platform_in_process), places=8, measured=measured)
    assert found.wanted(1.0).seconds_per_shard == pytest.approx(960)
