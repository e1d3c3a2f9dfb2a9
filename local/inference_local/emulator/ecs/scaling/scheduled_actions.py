"""Scheduled actions: when they come, in the form of the templates.

Source: API PutScheduledAction, Schedule: ``cron(minutes hours day-of-month month day-of-week year)``, in UTC
or the action's time zone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from inference_blueprints.serving.autoscaling.cron_schedule import CronError, CronSchedule

_FORM: Final = re.compile(r"cron\(((?:\S+ ){5})\*\)")
#: AWS counts weekdays from 1 (Sunday), others from 0. Names are the same everywhere.
_WEEKDAY_NUMBER: Final = re.compile(r"\d")


@dataclass(frozen=True)
class ScheduledChange:
    """A scheduled action."""

    name: str
    resource: str
    """The scaled resource."""
    schedule: CronSchedule
    """When it comes."""
    bounds: Mapping[str, int]
    """``ScalableTargetAction``."""
    request: Mapping[str, Any]
    """What PutScheduledAction gave."""


def scheduled_change(request: Mapping[str, Any]) -> ScheduledChange:
    """Read a request of PutScheduledAction.

    Raises ValueError if its schedule is of a form that the templates do not have.
    """
    found = _FORM.fullmatch(request["Schedule"])
    fields = found[1].strip() if found else ""
    if not found or _WEEKDAY_NUMBER.search(fields.split()[-1]):
        raise ValueError(
            f"{request['Schedule']}: the stand-in reads cron(minutes hours day month weekday *), with names "
            "of weekdays"
        )
    try:
        schedule = CronSchedule.read(fields, request.get("Timezone") or "UTC")
    except CronError as error:
        raise ValueError(str(error)) from error
    return ScheduledChange(
        request["ScheduledActionName"],
        request["ResourceId"],
        schedule,
        request["ScalableTargetAction"],
        request,
    )
