"""Schedules as KEDA's cron scaler reads them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from inference_blueprints.serving.autoscaling.cron_schedule import CronError, CronSchedule, CronWindow

_BERLIN = "Europe/Berlin"


def seconds(text: str, zone: str = _BERLIN) -> float:
    """Seconds since 1970 of a local time."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("expression", "after", "found"),
    [
        ("0 7 * * 1-5", "2026-11-21 12:00", "2026-11-23 07:00"),
        ("0 7 * * MON-FRI", "2026-11-23 07:00", "2026-11-24 07:00"),
        ("*/20 8-9 * * *", "2026-11-23 08:20", "2026-11-23 08:40"),
        ("5/25 * * * *", "2026-11-23 08:06", "2026-11-23 08:30"),
        ("0 0 1,15 * *", "2026-11-02 00:00", "2026-11-15 00:00"),
        ("0 0 29 FEB *", "2026-11-02 00:00", "2028-02-29 00:00"),
        pytest.param("0 0 13 * 5", "2026-11-14 00:00", "2026-11-20 00:00", id="day or weekday"),
        pytest.param("0 0 */2 * 5", "2026-11-14 00:00", "2026-11-27 00:00", id="a star asks for both"),
        pytest.param("30 2 * * *", "2026-03-29 00:00", "2026-03-30 02:30", id="not on the day that skips it"),
    ],
)
def test_next_time(expression: str, after: str, found: str) -> None:
    assert CronSchedule.read(expression, _BERLIN).next_after(seconds(after)) == seconds(found)


def test_a_repeated_hour_comes_twice() -> None:
    schedule = CronSchedule.read("30 2 * * *", _BERLIN)
    first = schedule.next_after(seconds("2026-10-25 00:00"))
    assert schedule.next_after(first) - first == 3600


@pytest.mark.parametrize(
    ("expression", "zone", "message"),
    [
        ("0 7 * *", _BERLIN, "'0 7 * *' has 4 fields; write five: minute hour day month weekday"),
        ("60 7 * * *", _BERLIN, "'60' is not a minute; allowed are 0 to 59"),
        ("0 7 * * 7", _BERLIN, "'7' is not a day of week; allowed are 0 to 6"),
        ("0 9-7 * * *", _BERLIN, "'9-7' is an empty range of the hour"),
        ("0 7 30 2 *", _BERLIN, "'0 7 30 2 *' names a day that no year has"),
        ("0 7 * * *", "Berlin", "'Berlin' is not a time zone; write one such as Europe/Berlin"),
        ("@daily", _BERLIN, "'@daily' has 1 fields; write five: minute hour day month weekday"),
    ],
)
def test_refused(expression: str, zone: str, message: str) -> None:
    with pytest.raises(CronError) as caught:
        CronSchedule.read(expression, zone)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("time", "is_open"),
    [
        ("2026-11-23 06:59:59", False),
        ("2026-11-23 07:00:00", True),
        ("2026-11-23 20:59:59", True),
        ("2026-11-23 21:00:00", False),
        ("2026-11-21 12:00:00", False),
    ],
)
def test_window(time: str, *, is_open: bool) -> None:
    window = CronWindow(*(CronSchedule.read(text, _BERLIN) for text in ("0 7 * * 1-5", "0 21 * * 1-5")))
    assert window.is_open(seconds(time)) is is_open


def test_window_over_midnight() -> None:
    window = CronWindow(*(CronSchedule.read(text, "UTC") for text in ("0 22 * * *", "0 4 * * *")))
    times = [seconds(f"2026-11-23 {hour:02}:30", "UTC") for hour in range(24)]
    assert [hour for hour, time in enumerate(times) if window.is_open(time)] == [0, 1, 2, 3, 22, 23]
