"""`AWS::CloudWatch::CompositeAlarm`, which the emulator has in its API but not in its CloudFormation."""

from __future__ import annotations

from typing import Any

from ministack.services import cloudwatch

from inference_local.emulator.resource_handlers.registry import (
    Made,
    ResourceRequest,
    handled_types,
    register,
)

RESOURCE_TYPE = "AWS::CloudWatch::CompositeAlarm"
#: The protocol of the requests: not CBOR, but JSON.
_JSON = (False, True)
_PERIODS = ("ActionsSuppressorWaitPeriod", "ActionsSuppressorExtensionPeriod")


class CompositeAlarmHandler:
    """Puts and deletes the alarm through the emulator's API."""

    def create(self, request: ResourceRequest) -> Made:
        """Put the alarm and return its name and ARN."""
        name = request.properties.get("AlarmName") or f"{request.stack}-{request.logical_id}"
        content: dict[str, Any] = {**request.properties, "AlarmName": name}
        content.update({key: int(content[key]) for key in _PERIODS if key in content})
        content["ActionsEnabled"] = str(content.get("ActionsEnabled", True)).lower() == "true"
        status, _, answer = cloudwatch._put_composite_alarm({}, content, *_JSON)
        if status != 200:  # noqa: PLR2004 - the status of success
            raise ValueError(f"{RESOURCE_TYPE}: {answer.decode()}")
        return name, {"Arn": cloudwatch._composite_alarms[name]["AlarmArn"]}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Delete the alarm."""
        cloudwatch._delete_alarms({}, {"AlarmNames": [request.physical_id]}, *_JSON)


def register_composite_alarms() -> None:
    """Register the handler in the emulator's CloudFormation.

    Raises RuntimeError if the emulator handles the type itself.
    """
    if RESOURCE_TYPE in handled_types():
        raise RuntimeError(f"the emulator handles {RESOURCE_TYPE} itself; delete this handler")
    register(RESOURCE_TYPE, CompositeAlarmHandler())
