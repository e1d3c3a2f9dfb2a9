"""Places go where they are needed, nobody starves, and no team takes another's share."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from batch.scheduling.allotment import WaitingOrRunning, allot
from inference_contracts.batch_configuration import BatchTeam

HOUR = 3600.0
JOB = WaitingOrRunning(
    job="j", team="ads", priority=10, submitted=0.0, deadline=24 * HOUR, shards=100, seconds_per_shard=600.0
)
JOBS = st.lists(
    st.builds(
        WaitingOrRunning,
        job=st.uuids().map(str),
        team=st.sampled_from(["ads", "search", "video"]),
        priority=st.integers(0, 100),
        submitted=st.floats(-100 * HOUR, 0),
        deadline=st.floats(-HOUR, 100 * HOUR),
        shards=st.integers(0, 50),
        seconds_per_shard=st.floats(0, 2 * HOUR),
        is_running=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda job: job.job,
)


@given(JOBS, st.integers(0, 60))
def test_all_places_are_used_and_none_twice(jobs: list[WaitingOrRunning], places: int) -> None:
    allotted = allot(jobs, places, now=0.0)
    wanting = {job.job: job for job in jobs if job.shards}
    assert set(allotted) == set(wanting)
    for name, count in allotted.items():
        assert int(wanting[name].is_running) <= count <= wanting[name].shards
    running = sum(job.is_running for job in wanting.values())
    assert sum(allotted.values()) == max(running, min(places, sum(job.shards for job in wanting.values())))


@given(JOBS, st.integers(0, 60))
def test_the_order_in_which_jobs_are_given_does_not_matter(jobs: list[WaitingOrRunning], places: int) -> None:
    assert allot(jobs, places, now=0.0) == allot(reversed(jobs), places, now=0.0)


def test_a_job_gets_what_its_deadline_takes_before_others_get_more() -> None:
    # 100 shards of 10 minutes in 5 hours: each place does 30 of them.
    urgent = replace(JOB, job="urgent", team="search", priority=0, deadline=5 * HOUR)
    easy = replace(JOB, job="easy", priority=50, shards=1000, deadline=1000 * HOUR)
    allotted = allot([easy, urgent], 5, now=0.0)
    assert allotted == {"easy": 1, "urgent": 4}


def test_between_two_that_need_all_the_higher_priority_wins() -> None:
    low = replace(JOB, job="low", priority=1, deadline=HOUR)
    high = replace(JOB, job="high", priority=2, deadline=HOUR)
    assert allot([low, high], 10, now=0.0) == {"high": 10, "low": 0}


def test_waiting_weighs_more_than_any_priority_in_the_end() -> None:
    old = replace(JOB, job="old", priority=0, submitted=-100 * HOUR, deadline=0.0)
    new = replace(JOB, job="new", priority=50, deadline=0.0)
    assert allot([old, new], 3, now=0.0) == {"old": 3, "new": 0}


def test_a_teams_many_jobs_are_one_share() -> None:
    many = [replace(JOB, job=f"many-{number:02}", deadline=1e9) for number in range(20)]
    one = replace(JOB, job="one", team="search", deadline=1e9, submitted=1.0)
    allotted = allot([*many, one], 40, now=10.0)
    assert allotted["one"] == 20 - 0
    assert sum(allotted[job.job] for job in many) == 20


def test_a_running_job_gives_way_but_for_one_place() -> None:
    running = replace(JOB, job="running", is_running=True, deadline=1000 * HOUR)
    urgent = replace(JOB, job="urgent", team="search", priority=90, deadline=HOUR)
    assert allot([running, urgent], 10, now=0.0) == {"running": 1, "urgent": 9}


@given(st.integers(1, 5), st.integers(1, 3))
def test_nothing_starves_although_new_jobs_never_end(places: int, arrivals: int) -> None:
    """A stream of new jobs of the highest priority; the old one with the lowest runs all the same."""
    old = replace(JOB, job="old", team="old", priority=0, shards=1, deadline=-1.0)
    for hour in range(1, 200):
        now = hour * HOUR
        new = [
            replace(JOB, job=f"{hour}-{number}", priority=100, submitted=now, deadline=now, shards=50)
            for number in range(arrivals)
        ]
        if allot([old, *new], places, now=now)["old"]:
            assert hour <= 101
            return
    raise AssertionError("the old job never ran")


@given(JOBS, st.integers(0, 60), st.integers(1, 100))
def test_no_team_gets_more_than_its_share(jobs: list[WaitingOrRunning], places: int, percent: int) -> None:
    team = BatchTeam("ads", (), 1.0, max_places_percent=percent)
    allotted = allot(jobs, places, now=0.0, maximum={"ads": team.max_places(places)})
    of_ads = [job for job in jobs if job.team == "ads" and job.shards]
    # A running job keeps one place, even if there are more running jobs than places.
    running = sum(job.is_running for job in of_ads)
    assert sum(allotted[job.job] for job in of_ads) <= max(running, team.max_places(places))


def test_others_get_the_places_above_a_team_s_share() -> None:
    greedy = replace(JOB, job="greedy", priority=100, deadline=HOUR)
    other = replace(JOB, job="other", team="search", priority=0)
    assert allot([greedy, other], 10, now=0.0, maximum={"ads": 4}) == {"greedy": 4, "other": 6}
