"""A job ends, once, whichever event or call of its life is lost, doubled, late, refused or unanswered."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator

import pytest
from simpy.events import Event

from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.jobs.spending import SpendingTable, month_of
from batch.scheduling.admissions import AdmissionTable, admitted
from inference_contracts.batch_names import OPEN, JobState
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.job_records import NOW
from tests.runtime.batch.simulated.job_life import (
    CALL_FAULTS,
    DELIVERY_FAULTS,
    Fault,
    FaultSchedule,
    Life,
    Story,
    is_over,
    simulated,
)

HOUR = 3600
#: First and last calls of a life that get a fault.
CALLS = 8
STORIES = {
    "it completes": Story("completed"),
    "it is cancelled while it runs": Story("cancelled", cancelled_at=100, workers_answer=False),
    "it is cancelled while it is checked": Story("cancelled", cancelled_at=2),
    "its deadline passes": Story("expired", workers_answer=False, scheduled_every=600),
    "its merge always fails": Story("failed", broken="merge"),
    "its check always fails": Story("failed", broken="check"),
}
#: A fault can hold a job back until its deadline, and an event of cancelling can come too late.
ALSO = {"completed": {"completed"}, "cancelled": {"cancelled"}, "expired": {"expired"}, "failed": {"failed"}}
#: Several late events can also hold a job back until its deadline, and let it end before it is cancelled.
AFTER_MANY_FAULTS: dict[str, set[str]] = {
    "completed": {"expired"},
    "cancelled": {"completed", "expired"},
    "expired": set(),
    "failed": {"expired"},
}
INPUT = b"".join(
    json.dumps(
        {
            "custom_id": f"line-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "qwen3-8b", "messages": [{"role": "user", "content": "word"}]},
        }
    ).encode()
    + b"\n"
    for number in range(2)
)


def live(life: Life) -> tuple[BatchPlatform, Job]:
    """Submit a job and let everything happen. Return the job as it is then."""
    with simulated(life) as platform:
        api = Api(platform)
        file = api.post_form("/v1/files", {"purpose": "batch"}, content=INPUT).body["id"]
        body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "1h"}
        # A client repeats a submission that failed, and names it by the same key.
        answers = [api.post("/v1/batches", body, {"Idempotency-Key": "once"}) for _ in range(4)]
        found = platform.jobs.get(next(each.body["id"] for each in answers if "id" in each.body))
        assert found is not None
        life.env.process(life.run_scheduler())
        if life.story.cancelled_at is not None:
            life.env.process(cancel(life, api, found))
        while life.env.now < 5 * HOUR and not (life.pending == 0 and is_over(platform, found)):
            life.env.run(until=life.env.now + 120)
        ended = platform.jobs.get(found.id)
        assert ended is not None
        assert_nothing_is_left(platform, ended)
        return platform, ended


def cancel(life: Life, api: Api, job: Job) -> Generator[Event, object, None]:
    yield life.env.timeout(life.story.cancelled_at or 0)
    api.post(f"/v1/batches/{job.id}/cancel", {})


def assert_nothing_is_left(platform: BatchPlatform, job: Job) -> None:
    """No job is open, nothing holds budget, and the job is counted once."""
    open_jobs = [each for state in OPEN for each in platform.jobs.in_state(state)]
    assert open_jobs == []
    assert list(admitted(platform.jobs, AdmissionTable(platform.table))) == []
    spent = SpendingTable(platform.table).of("search", month_of(NOW))
    assert [each.figures.jobs for each in spent] in ([1], [])
    assert sum(each.figures.usd for each in spent) == pytest.approx(job.cost_usd)


@pytest.mark.faults
@pytest.mark.parametrize("name", STORIES)
def test_it_ends(name: str) -> None:
    life = Life(STORIES[name])
    _, job = live(life)
    assert job.state == STORIES[name].end
    assert min(life.deliveries, life.calls) >= 2


def faults(life: Life) -> Iterator[tuple[Fault, int]]:
    """Iterate over every fault of everything that happened in a life."""
    for place in range(life.deliveries):
        for fault in DELIVERY_FAULTS:
            yield fault, place
    # The calls in the middle are those of a scheduler that finds nothing to do.
    for place in range(life.calls):
        if min(place, life.calls - place) < CALLS:
            for fault in CALL_FAULTS:
                yield fault, place


@pytest.mark.faults
@pytest.mark.parametrize("name", STORIES)
def test_it_ends_whatever_goes_wrong(name: str) -> None:
    story = STORIES[name]
    undisturbed = Life(story)
    live(undisturbed)
    wrong = {}
    for fault, place in faults(undisturbed):
        _, job = live(Life(story, fault, place))
        if job.state not in ALSO[story.end]:
            wrong[fault, place] = job.state
    assert wrong == {}


def ends_of_schedules(name: str, seeds: range) -> dict[int, JobState]:
    """Live a story with each schedule of faults, and return the unexpected ends."""
    story = STORIES[name]
    found: dict[int, JobState] = {}
    for seed in seeds:
        _, job = live(Life(story, schedule=FaultSchedule(seed)))
        if job.state not in ALSO[story.end] | AFTER_MANY_FAULTS[story.end]:
            found[seed] = job.state
    return found


@pytest.mark.parametrize("name", ["it completes", "it is cancelled while it runs"])
def test_it_ends_although_several_things_go_wrong(name: str) -> None:
    assert ends_of_schedules(name, range(3)) == {}


@pytest.mark.faults
@pytest.mark.parametrize("name", STORIES)
def test_it_ends_with_any_schedule_of_faults(name: str) -> None:
    """Losses, repetitions, delays, refused and unanswered calls and killed workers, in one life."""
    assert ends_of_schedules(name, range(100, 116)) == {}
