"""The section `capacityShift` of a blueprint, and the limits that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from inference_contracts.shift_configuration import ShiftConfiguration
from inference_contracts.shift_names import DEFAULT_SAFETY_PERCENT, ShiftAction

#: ``frozen``: people stopped the shift, and nothing changes until they thaw it. ``unknown``: the switch
#: cannot be read. Then nothing more is lent, but real time gets back what it needs.
FreezeSwitch = Literal["thawed", "frozen", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftSettings:
    """How the shift decides."""

    action: ShiftAction = "observe"
    """Whether decisions are carried out, or only recorded."""
    freeze: FreezeSwitch = "thawed"
    safety_percent: float = DEFAULT_SAFETY_PERCENT
    """Margin above the upper forecast, in percent."""
    reclaim_seconds: float = 600.0
    """Within this time lent replicas serve real time again."""
    admission_seconds: float = 60.0
    """Within this time batch has left a deployment that it shares with real time."""
    stale_seconds: float = 180.0
    """Age of the newest measurement from which metrics count as missing."""
    lower_after_seconds: float = 600.0
    """How long a lower floor must have sufficed before the floor goes down."""
    lower_percent_per_minute: float = 10.0
    """Most of the present floor that it goes down in a minute, in percent. It is at least one replica."""
    lend_percent_per_minute: float = 25.0
    """Most of a deployment's capacity by which the share of batch grows in a minute, in percent. It shrinks
    at once."""
    learn_seconds: float = 86400.0
    """Least history of a deployment with which anything is lent."""

    @classmethod
    def of(cls, configuration: ShiftConfiguration, freeze: FreezeSwitch = "thawed") -> Self:
        """Return the settings of a platform.

        configuration: What its shift moves, and how.
        """
        return cls(
            action=configuration.action,
            freeze=freeze,
            safety_percent=configuration.safety_percent,
            reclaim_seconds=configuration.reclaim_seconds,
        )
