"""What a team has spent, what runs, and what is left of its budget; of no other team."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from batch.api import cost_routes
from batch.api.api_request import ApiRequest
from batch.jobs.job_progress import ProgressTable
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


def test_with_a_front_door_all_requests_of_the_team_use_its_budget(
    platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if answers of a running job count twice, or if jobs have a budget of their own."""
    now = int(time.time())
    end(platform_in_process, now, 3.5)
    door = SimpleNamespace(usd=lambda team, _: {"search": 120.0}[team])
    monkeypatch.setattr(cost_routes, "read_door_spending", lambda _: door)
    job = make_job(platform_in_process, state="in_progress")
    finalizing = make_job(platform_in_process, state="finalizing")
    admissions = AdmissionTable(platform_in_process.table)
    for each in (job, finalizing):
        admissions.put(Admission(each.id, 1, "token", 3, 0, 60.0, 400.0, 2), now=now)
    progress = SimpleNamespace(of=lambda _: SimpleNamespace(cost_usd=100.0))
    routes = cost_routes.Costs(replace(platform_in_process, progress=cast("ProgressTable", progress)))
    team = SimpleNamespace(name="search", monthly_budget_usd=1000.0)
    request = cast("ApiRequest", SimpleNamespace(team=team, event=SimpleNamespace(raw_event={})))
    found = routes.retrieve(request)
    assert (found["spent_usd"], found["door_usd"]) == (3.5, 120.0)
    assert (found["running_usd"], found["left_usd"]) == (300.0, 580.0)
