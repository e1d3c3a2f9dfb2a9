"""What a team has spent, what runs, and what is left of its budget; of no other team."""

from __future__ import annotations

import time

import pytest

from batch.jobs.settings import BatchPlatform
from batch.jobs.spending import Figures, additions, month_of
from batch.scheduling.admissions import Admission, AdmissionTable
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.job_records import make_job

LONG_AGO = 1_700_000_000


def end(platform: BatchPlatform, now: int, usd: float, team: str = "search") -> None:
    job = make_job(platform, team=team)
    figures = Figures(1, 9, 1, 1000, 100, 200, usd)
    platform.jobs.move(
        job.id, "failed", before=["validating"], now=now, additions=additions(job, figures, now=now)
    )


def test_a_month_is_summed_up_by_model_and_queue(api: Api, platform_in_process: BatchPlatform) -> None:
    now = int(time.time())
    end(platform_in_process, now, 1.5)
    end(platform_in_process, now, 2.0)
    end(platform_in_process, now, 100.0, team="adverts")
    end(platform_in_process, LONG_AGO, 7.0)
    answer = api.get("/v1/costs")
    assert answer.status == 200
    assert answer.body == {
        "object": "costs",
        "team": "search",
        "month": month_of(now),
        "budget_usd": 1000,
        "spent_usd": 3.5,
        "running_usd": 0.0,
        "left_usd": 996.5,
        "data": [
            {
                "object": "cost",
                "model": "qwen3-8b",
                "queue": "nightly",
                "jobs": 2,
                "requests": 18,
                "failed": 2,
                "input_tokens": 2000,
                "cached_tokens": 200,
                "output_tokens": 400,
                "usd": 3.5,
            }
        ],
    }
    then = api.get("/v1/costs", month=month_of(LONG_AGO)).body
    assert (then["month"], then["spent_usd"]) == (month_of(LONG_AGO), 7.0)


def test_what_runs_is_counted_by_its_estimate_and_what_waits_is_not(
    api: Api, platform_in_process: BatchPlatform
) -> None:
    admissions = AdmissionTable(platform_in_process.table)
    for state, places, team in (
        ("in_progress", 2, "search"),
        ("finalizing", 2, "search"),
        ("validating", None, "search"),
        ("in_progress", 2, "adverts"),
    ):
        job = make_job(platform_in_process, state=state, team=team)
        admissions.put(Admission(job.id, 1, "token", 3, 0, 60.0, 400.0, places), now=int(time.time()))
    answer = api.get("/v1/costs").body
    assert (answer["spent_usd"], answer["running_usd"], answer["left_usd"]) == (0, 800.0, 200.0)
    assert api.get("/v1/costs", month=month_of(LONG_AGO)).body["running_usd"] == 0


@pytest.mark.parametrize("month", ["2026", "2026-13", "2026-1", "2026-11-01", "x", "2026-11\n"])
def test_no_month_is_refused(api: Api, month: str) -> None:
    answer = api.get("/v1/costs", month=month)
    assert (answer.status, answer.error["param"]) == (400, "month")
