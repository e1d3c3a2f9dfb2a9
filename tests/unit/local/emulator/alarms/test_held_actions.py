"""Suppressed actions of composite alarms: the examples of AWS's document.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-suppression.html
"""

from __future__ import annotations

from inference_local.emulator.alarms.state_changes import HeldActions, begin, follow

WAIT = 2.0
EXTENSION = 3.0


def begun(at: float, *, suppressor: bool) -> HeldActions:
    return begin(suppressor_in_alarm=suppressor, now_seconds=at, wait_seconds=WAIT)


def followed(held: HeldActions, at: float, *, suppressor: bool) -> HeldActions | None:
    return follow(held, suppressor_in_alarm=suppressor, now_seconds=at, extension_seconds=EXTENSION)


def test_example_1_actions_are_not_suppressed_after_the_wait_period() -> None:
    held = begun(2, suppressor=False)
    assert followed(held, 3, suppressor=False) == held == HeldActions("WaitPeriod", 4)
    assert followed(held, 4, suppressor=False) is None


def test_example_2_the_suppressor_goes_into_alarm_before_the_wait_period_ends() -> None:
    held = followed(begun(2, suppressor=False), 3, suppressor=True)
    assert held == HeldActions("Alarm")
    assert followed(held, 100, suppressor=True) == HeldActions("Alarm")


def test_example_3_another_change_begins_the_wait_period_again() -> None:
    held = begun(3, suppressor=False)
    assert followed(held, 4, suppressor=False) == held
    assert followed(held, 5, suppressor=False) is None


def test_example_4_the_suppressor_is_in_alarm_before() -> None:
    assert begun(2, suppressor=True) == HeldActions("Alarm")


def test_example_5_actions_are_not_suppressed_after_the_extension_period() -> None:
    held = followed(HeldActions("Alarm"), 6, suppressor=False)
    assert held == HeldActions("ExtensionPeriod", 9)
    assert followed(held, 8, suppressor=False) == held
    assert followed(held, 9, suppressor=False) is None


def test_example_6_a_change_in_the_extension_period_begins_a_wait_period() -> None:
    assert begun(7, suppressor=False) == HeldActions("WaitPeriod", 9)
