"""When the emulator evaluates its alarms."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from inference_local.emulator import alarm_schedule
from inference_local.emulator.alarm_schedule import AlarmSchedule


class _SleptError(Exception):
    """Ends the loop of evaluations."""


@pytest.mark.parametrize(("now", "seconds"), [(1003.0, 7.0), (1009.5, 0.5), (1010.0, 10.0)])
def test_alarms_are_evaluated_at_the_next_full_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, now: float, seconds: float
) -> None:
    """A tick that is left out would raise an alarm ten seconds late."""

    async def sleep(given: float) -> None:
        assert given == seconds
        raise _SleptError

    monkeypatch.setattr(alarm_schedule, "time", SimpleNamespace(time=lambda: now))
    monkeypatch.setattr(alarm_schedule, "asyncio", SimpleNamespace(sleep=sleep))
    with pytest.raises(_SleptError):
        asyncio.run(AlarmSchedule(speed=1.0).run())
