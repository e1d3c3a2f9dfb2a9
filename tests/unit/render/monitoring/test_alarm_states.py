"""The times between a breach and an alarm."""

from inference_blueprints.render.monitoring.alarm_table import in_alarm

_TIMES = [60.0 * minute for minute in range(12)]


def _minutes(*breaches: int, pending: int, recovery: int) -> list[int]:
    found = in_alarm(
        [60.0 * each for each in breaches],
        _TIMES,
        pending_seconds=60 * pending,
        recovery_seconds=60 * recovery,
    )
    return [round(at / 60) for at in found]


def test_a_breach_must_last() -> None:
    assert _minutes(2, 3, 4, 5, pending=2, recovery=1) == [4, 5, 6]
    assert _minutes(2, 3, 5, 6, pending=2, recovery=1) == []  # a gap starts the time again


def test_an_alarm_ends_after_its_recovery() -> None:
    assert _minutes(1, pending=0, recovery=3) == [1, 2, 3, 4]
    assert _minutes(1, 3, pending=0, recovery=3) == [1, 2, 3, 4, 5, 6]
