"""Whether a composite alarm takes its actions while it has a suppressor alarm.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-suppression.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_WAIT: Final = "WaitPeriod"
_EXTENSION: Final = "ExtensionPeriod"
_ALARM: Final = "Alarm"


@dataclass(frozen=True, slots=True)
class HeldActions:
    """Actions that a composite alarm has not taken yet."""

    by: str
    """What suppresses them: ``WaitPeriod``, ``Alarm`` or ``ExtensionPeriod``."""
    until_seconds: float | None = None
    """End of the period, in seconds since 1970. None while the suppressor is in ALARM."""


def begin(*, suppressor_in_alarm: bool, now_seconds: float, wait_seconds: float) -> HeldActions:
    """Return what suppresses the actions of a composite alarm that changes its state.

    A change during a period begins a new wait period.
    """
    return HeldActions(_ALARM) if suppressor_in_alarm else HeldActions(_WAIT, now_seconds + wait_seconds)


def follow(
    held: HeldActions, *, suppressor_in_alarm: bool, now_seconds: float, extension_seconds: float
) -> HeldActions | None:
    """Return what suppresses the actions now. None if it is time to take them."""
    until = held.until_seconds
    if until is not None and now_seconds >= until:
        return None
    if suppressor_in_alarm:
        return HeldActions(_ALARM)
    if until is None:
        return HeldActions(_EXTENSION, now_seconds + extension_seconds)
    return held
