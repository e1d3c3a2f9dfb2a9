"""Scheduled actions keep the floors that KEDA's windows keep."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_blueprints.render.ecs.scaling_policies import FloorScheduleError, scheduled_floors
from inference_blueprints.serving.autoscaling.cron_schedule import CronSchedule, CronWindow
from inference_blueprints.serving.types import ReplicaFloor

MINIMUM = 2
UTC = "Etc/UTC"
#: Midnight of a Sunday, on which the week of a cron expression begins.
SUNDAY = datetime(2026, 11, 22, tzinfo=ZoneInfo(UTC))


def floor(start: str, end: str, replicas: int = 8, time_zone: str = UTC) -> ReplicaFloor:
    return ReplicaFloor(start=start, end=end, time_zone=time_zone, replicas=replicas)


def test_a_working_day_is_two_actions() -> None:
    actions = scheduled_floors([floor("0 8 * * 1-5", "30 18 * * 1-5", time_zone="Europe/Berlin")], MINIMUM)
    assert {(each.schedule, each.minimum, each.time_zone) for each in actions} == {
        ("cron(0 8 ? * MON,TUE,WED,THU,FRI *)", 8, "Europe/Berlin"),
        ("cron(30 18 ? * MON,TUE,WED,THU,FRI *)", 2, "Europe/Berlin"),
    }


def test_the_end_of_an_inner_floor_returns_to_the_outer_one() -> None:
    actions = scheduled_floors(
        [floor("0 8 * * *", "0 18 * * *", 4), floor("0 12 * * *", "0 14 * * *", 9)], MINIMUM
    )
    every = "? * SUN,MON,TUE,WED,THU,FRI,SAT *"
    assert {(each.schedule, each.minimum) for each in actions} == {
        (f"cron(0 8 {every})", 4),
        (f"cron(0 12 {every})", 9),
        (f"cron(0 14 {every})", 4),
        (f"cron(0 18 {every})", 2),
    }


def test_one_floor_may_name_days_of_the_month() -> None:
    actions = scheduled_floors([floor("0 6 1,15 * *", "0 6 3,17 * *")], MINIMUM)
    assert [(each.schedule, each.minimum) for each in actions] == [
        ("cron(0 6 1,15 * ? *)", 8),
        ("cron(0 6 3,17 * ? *)", 2),
    ]


def test_floors_that_always_hold_together_are_set() -> None:
    actions = scheduled_floors([floor("0 0 * * *", "0 12 * * *"), floor("0 12 * * *", "0 0 * * *")], MINIMUM)
    assert [(each.schedule, each.minimum) for each in actions] == [("cron(0 0 ? * SUN *)", 8)]


def test_a_floor_whose_end_comes_with_its_next_start_stays() -> None:
    """As in KEDA: from 18:00 on, the next end and the next start are both at 8:00, so it is open."""
    actions = scheduled_floors([floor("0 8 * * *", "0 8,18 * * *")], MINIMUM)
    assert [each.minimum for each in actions] == [8]


@pytest.mark.parametrize(
    ("floors", "reason"),
    [
        ([floor("0 6 1 * *", "0 6 3 * *"), floor("0 8 * * *", "0 9 * * *")], "several floors with days"),
        ([floor("0 8 * * *", "0 9 * * *"), floor("0 8 * * *", "0 9 * * *", 3, "Asia/Tokyo")], "time zones"),
        ([floor("0 8 1 * 1", "0 9 2 * *")], "not both"),
        ([floor("*/5 * * * 1", "2-59/5 * * * 1")], "288|576"),
    ],
)
def test_what_actions_cannot_keep_is_refused(floors: list[ReplicaFloor], reason: str) -> None:
    with pytest.raises(FloorScheduleError, match=reason):
        scheduled_floors(floors, MINIMUM)


def test_as_many_actions_as_the_quota_allows_are_kept() -> None:
    """AWS' quota is 200 scheduled actions, and a floor that needs all of them must not be refused."""
    actions = scheduled_floors([floor("0,12,24,36,48 0-19 * * 1", "6,18,30,42,54 0-19 * * 1")], MINIMUM)
    assert len(actions) == 200


TIMES = st.builds(
    lambda minute, hours, days: f"{minute} {','.join(map(str, hours))} * * {days}",
    st.sampled_from(["0", "30", "15,45"]),
    st.lists(st.integers(0, 23), min_size=1, max_size=2, unique=True),
    st.sampled_from(["*", "1-5", "0,6", "3"]),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(TIMES, TIMES, st.integers(3, 9)), min_size=1, max_size=3))
def test_actions_say_what_keda_s_windows_say_at_every_quarter_of_an_hour(
    specs: list[tuple[str, str, int]],
) -> None:
    floors = [floor(start, end, replicas) for start, end, replicas in specs if start != end]
    actions = scheduled_floors(floors, MINIMUM)
    windows = [
        (CronWindow(CronSchedule.read(each.start, UTC), CronSchedule.read(each.end, UTC)), each.replicas)
        for each in floors
    ]
    minutes = {
        (day * 1440 + int(hour) * 60 + int(minute)): action.minimum
        for action in actions
        for minute, hour, days in [_parts(action.schedule)]
        for day in days
    }
    for quarter in range(0, 7 * 96, 3):
        at = quarter * 15
        moment = SUNDAY + timedelta(minutes=at)
        expected = max(
            [MINIMUM, *(number for window, number in windows if window.is_open(moment.timestamp()))]
        )
        if minutes:
            newest = min(minutes, key=lambda each: (at - each) % (7 * 1440))
            assert minutes[newest] == expected
        else:
            assert expected == MINIMUM


def _parts(schedule: str) -> tuple[str, str, list[int]]:
    minute, hour, _, _, days, _ = schedule.removeprefix("cron(").removesuffix(")").split()
    names = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
    return minute, hour, [names.index(day) for day in days.split(",")]
