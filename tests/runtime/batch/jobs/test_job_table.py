"""The records of jobs: of two writers one wins, and nobody overtakes a state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from batch.contracts.request import Input
from batch.contracts.shard import Usage
from batch.jobs.job_table import (
    TIMES,
    Job,
    JobError,
    JobTable,
    KeyReusedError,
    Once,
    RequestCounts,
    plain,
)
from batch.jobs.record_table import StateConflictError, Table, UnknownCursorError
from batch.jobs.settings import BatchPlatform
from inference_contracts.batch_keys import new_job
from inference_contracts.batch_names import (
    FINAL,
    STATES,
    JobState,
    can_follow,
)
from tests.runtime.batch.resources import SEARCH

NOW = 1_800_000_000


def a_job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "id": new_job("qwen3-8b"),
        "team": "search",
        "queue": "nightly",
        "model": "qwen3-8b",
        "endpoint": "/v1/chat/completions",
        "inputs": (Input("inputs", "in.jsonl"),),
        "source": "api",
        "principal": SEARCH,
        "created_at": NOW,
        "expires_at": NOW + 3600,
        "completion_window": "1h",
        "priority": 10,
        "budget_usd": 12.34,
    }
    return Job(**{**values, **changes})


@pytest.fixture
def jobs(platform_in_process: BatchPlatform) -> JobTable:
    return platform_in_process.jobs


def together(count: int, function: Callable[[int], object]) -> list[object]:
    """Call a function at the same moment in threads and return the results, exceptions included."""
    barrier = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = function(number)
        except (StateConflictError, KeyReusedError) as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_record_is_read_as_it_was_written(jobs: JobTable) -> None:
    job = a_job(
        times={"failed_at": 3},
        counts=RequestCounts(3, 2, 1),
        usage=Usage(10, 2, 5),
        cost_usd=0.1,
        budget_usd=1.0,
        errors=(JobError("code", "message", 7, "param"),),
        metadata={"a": "b"},
        state="failed",
    )

    assert jobs.create(job, None) == job
    assert jobs.get(job.id) == job
    assert isinstance(jobs.get(job.id).budget_usd, float)  # type: ignore[union-attr]


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_a_job_goes_only_where_it_may(jobs: JobTable, before: JobState, after: JobState) -> None:
    job = jobs.create(a_job(state=before), None)
    if not can_follow(before, after):
        with pytest.raises(ValueError, match=f"{after} cannot follow {before}"):
            jobs.move(job.id, after, before=[before], now=NOW)
        assert jobs.get(job.id) == job
        return

    moved = jobs.move(job.id, after, before=[before], now=NOW)

    assert (moved.state, moved.times) == (after, {TIMES[after]: NOW})
    assert [each.id for each in jobs.in_state(after)] == ([] if after in FINAL else [job.id])
    assert list(jobs.in_state(before)) == []


def test_of_two_writers_one_wins(jobs: JobTable) -> None:
    job = jobs.create(a_job(), None)
    ways: list[JobState] = ["in_progress", "failed", "cancelling", "expired"] * 3

    results = together(12, lambda number: jobs.move(job.id, ways[number], before=["validating"], now=NOW))

    winners = [result for result in results if isinstance(result, Job)]
    assert len(winners) == 1
    assert jobs.get(job.id) == winners[0]


def test_an_attempt_that_was_replaced_changes_nothing(jobs: JobTable) -> None:
    job = jobs.create(a_job(state="failed"), None)
    again = jobs.move(job.id, "in_progress", before=["failed"], now=NOW, changes={"attempt": 2})
    assert again.attempt == 2

    with pytest.raises(StateConflictError):
        jobs.move(job.id, "failed", before=["in_progress"], now=NOW, attempt=1)
    with pytest.raises(StateConflictError):
        jobs.note(replace(again, attempt=1), {"counts": plain(RequestCounts(9, 9, 9))})
    assert jobs.get(job.id) == again


def test_counts_are_noted_while_a_job_runs_and_not_after(jobs: JobTable) -> None:
    job = jobs.create(a_job(state="in_progress"), None)

    noted = jobs.note(job, {"counts": plain(RequestCounts(10, 4, 1)), "cost_usd": 0.25})
    assert (noted.counts.completed, noted.cost_usd) == (4, 0.25)
    assert [each.counts for each in jobs.in_state("in_progress")] == [noted.counts]

    jobs.move(job.id, "cancelling", before=["in_progress"], now=NOW)
    with pytest.raises(StateConflictError):
        jobs.note(noted, {"cost_usd": 9.0})


def test_what_is_not_there_is_not_changed(jobs: JobTable) -> None:
    missing = new_job("qwen3-8b")

    with pytest.raises(StateConflictError) as conflict:
        jobs.move(missing, "failed", before=["validating"], now=NOW)
    assert conflict.value.found is None
    assert jobs.get(missing) is None


def test_the_same_submission_at_the_same_moment_is_one_job(jobs: JobTable) -> None:
    once = Once("run-7", "fingerprint")

    made = together(8, lambda _: jobs.create(a_job(), once))

    assert len({job.id for job in made if isinstance(job, Job)}) == 1
    assert len(made) == 8
    assert len(jobs.of_team("search", after=None, limit=100).jobs) == 1


def test_a_key_is_its_teams_and_stands_for_one_submission(jobs: JobTable) -> None:
    first = jobs.create(a_job(), Once("run-7", "one"))

    with pytest.raises(KeyReusedError):
        jobs.create(a_job(), Once("run-7", "two"))
    assert jobs.create(a_job(team="adverts"), Once("run-7", "two")).id != first.id


def test_a_key_is_forgotten_after_its_time(jobs: JobTable) -> None:
    once = Once("run-7", "one", seconds=60)
    first = jobs.create(a_job(), once)

    assert jobs.create(a_job(created_at=NOW + 59), once).id == first.id
    assert jobs.create(a_job(created_at=NOW + 61), once).id != first.id


def test_a_key_without_its_job_gets_it(jobs: JobTable, monkeypatch: pytest.MonkeyPatch) -> None:
    once = Once("run-7", "one")
    with monkeypatch.context() as broken:
        real = Table.put_new
        # The process ends between the two writes.
        broken.setattr(
            Table,
            "put_new",
            lambda table, item, *, now: (
                real(table, item, now=now) if str(item["id"]).startswith("once#") else 1 / 0
            ),
        )
        lost = a_job()
        with pytest.raises(ZeroDivisionError):
            jobs.create(lost, once)

    assert jobs.create(a_job(), once).id == lost.id


def test_a_list_is_newest_first_and_goes_on_where_it_ended(jobs: JobTable) -> None:
    made = [jobs.create(a_job(), None).id for _ in range(7)]
    jobs.create(a_job(team="adverts"), None)

    seen: list[str] = []
    after = None
    while True:
        page = jobs.of_team("search", after=after, limit=3)
        seen += [job.id for job in page.jobs]
        if not page.has_more:
            break
        after = seen[-1]

    assert seen == made[::-1]
    assert not jobs.of_team("search", after=None, limit=7).has_more
    for cursor in (new_job("qwen3-8b"), "nothing"):
        with pytest.raises(UnknownCursorError):
            jobs.of_team("search", after=cursor, limit=3)
    with pytest.raises(UnknownCursorError):
        jobs.of_team("adverts", after=made[0], limit=3)


def test_a_list_of_large_records_is_whole(jobs: JobTable) -> None:
    # A page of DynamoDB ends at 1 MB.
    made = [jobs.create(a_job(metadata={"note": "x" * 300_000}), None).id for _ in range(6)]

    page = jobs.of_team("search", after=None, limit=5)

    assert ([job.id for job in page.jobs], page.has_more) == (made[:0:-1], True)
    assert [job.id for job in jobs.in_state("validating")] == made
