"""Sends what CloudWatch sends when an alarm changes its state: an event, and what its actions ask for.

The emulator sends messages to topics alone, without the fields that CloudWatch documents.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import botocore.session
from ministack.core.responses import (
    AccountRegionScopedDict,
    get_account_id,
    get_region,
    new_uuid,
    request_scope,
)
from ministack.services import cloudwatch, eventbridge, sns

from inference_local.emulator.alarms import state_changes
from inference_local.emulator.alarms.state_changes import (
    EVENT_SOURCE,
    EVENT_TYPE,
    AlarmState,
    StateChange,
)

_LOGGER = logging.getLogger("alarms")
_put_plain = cloudwatch._put_composite_alarm
_record_plain = cloudwatch._record_history
_INITIAL = "Unchecked: Initial alarm creation"
_SUPPRESSOR = ("ActionsSuppressor", "ActionsSuppressorWaitPeriod", "ActionsSuppressorExtensionPeriod")
#: Name of an alarm to its last state that was told.
_told = AccountRegionScopedDict()
#: Name of a composite alarm to its suppressor's parameters.
_suppressors = AccountRegionScopedDict()
#: Name of a composite alarm to the change whose actions it has not taken, and what keeps it from them.
_suppressed = AccountRegionScopedDict()
#: The time of the evaluation that is under way. Empty outside of evaluations.
_now: list[float] = []


def apply() -> None:
    """Apply the patch."""
    cloudwatch._put_composite_alarm = _put_composite_alarm
    cloudwatch._dispatch_alarm_actions = _dispatch
    cloudwatch._record_history = _record_history


def act(record: dict[str, Any], before: str, now_seconds: float) -> None:
    """Tell of a metric alarm's new state, and evaluate the composite alarms above it.

    record: The alarm in its new state.
    before: Its former state.
    now_seconds: Time of the change, in seconds since 1970.
    """
    _now.append(now_seconds)
    try:
        state, reason = record["StateValue"], record["StateReason"]
        cloudwatch._record_history(record["AlarmName"], before, state, reason, "MetricAlarm")
        _dispatch(record, before, state, reason)
        cloudwatch._evaluate_parent_alarms(record)
    finally:
        _now.clear()


def follow_suppressions(now_seconds: float) -> None:
    """Take the suppressed actions whose time has come.

    now_seconds: The time, in seconds since 1970.
    """
    for account, region, name in list(_suppressed._data):
        with request_scope(account, region):
            alarm = cloudwatch._composite_alarms.get(name)
            change, held = _suppressed[name]
            if alarm is None or name not in _suppressors:
                del _suppressed[name]
                continue
            following = state_changes.follow(
                held,
                suppressor_in_alarm=_suppressor_in_alarm(name),
                now_seconds=now_seconds,
                extension_seconds=float(_suppressors[name]["ActionsSuppressorExtensionPeriod"]),
            )
            if following is None:
                del _suppressed[name]
                _take_actions(change)
            else:
                _suppressed[name] = change, following
            _show_suppression(alarm, following)


def _dispatch(alarm: dict[str, Any], before: str, state: str, reason: str) -> None:
    """Send the event of a change and take its actions."""
    now = _now[-1] if _now else time.time()
    name = alarm["AlarmName"]
    alarm["StateUpdatedTimestamp"] = now
    told = _told.get(name)
    if told is None or told.value != before:
        created = float(alarm.get("AlarmConfigurationUpdatedTimestamp") or now)
        told = AlarmState(before, _INITIAL, None, created)
    held = _begin_suppression(name, now)
    current = AlarmState(state, reason, alarm.get("StateReasonData"), now, held.by if held else None)
    change = StateChange(
        {**alarm, **(_suppressors.get(name) or {})},
        told,
        current,
        get_account_id(),
        get_region(),
        _region_name(),
    )
    _told[name] = replace(current, suppressed_by=None)
    send_event(EVENT_TYPE, change.event_detail(), alarm["AlarmArn"], now)
    if held is None:
        _take_actions(change)
    else:
        _suppressed[name] = change, held
        _show_suppression(alarm, held)


def _begin_suppression(name: str, now: float) -> state_changes.HeldActions | None:
    if name not in _suppressors:
        return None
    return state_changes.begin(
        suppressor_in_alarm=_suppressor_in_alarm(name),
        now_seconds=now,
        wait_seconds=float(_suppressors[name]["ActionsSuppressorWaitPeriod"]),
    )


def _suppressor_in_alarm(name: str) -> bool:
    reference = _suppressors[name]["ActionsSuppressor"]
    return bool(cloudwatch._rule_alarm_state(reference) == "ALARM")


def _show_suppression(alarm: dict[str, Any], held: state_changes.HeldActions | None) -> None:
    """Show in DescribeAlarms what suppresses the actions."""
    for name in ("ActionsSuppressedBy", "ActionsSuppressedReason"):
        alarm.pop(name, None)
    if held is not None:
        alarm["ActionsSuppressedBy"] = held.by
        alarm["ActionsSuppressedReason"] = f"Actions suppressed by {held.by}"


def send_event(event_type: str, detail: Mapping[str, Any], arn: str, now: float) -> None:
    """Send an event to the default bus at the time of the change.

    event_type: Its `detail-type`.
    detail: Its content.
    arn: ARN of the alarm.
    now: Time of the change, in seconds since 1970.
    """
    event = {
        "EventId": new_uuid(),
        "Source": EVENT_SOURCE,
        "DetailType": event_type,
        "Detail": json.dumps(detail),
        "EventBusName": "default",
        "Time": int(now),
        "Resources": [arn],
        "Account": get_account_id(),
        "Region": get_region(),
    }
    eventbridge._ensure_default_bus()
    eventbridge._events_log_list().append(event)
    view = eventbridge._pattern_event_view(event)
    eventbridge._dispatch_event(event, view)
    eventbridge._archive_event(event, view)


def _take_actions(change: StateChange) -> None:
    """Send messages to topics and invoke functions. Other actions have no effect here."""
    for action in change.actions():
        try:
            if ":sns:" in action:
                sns._fanout(action, new_uuid(), json.dumps(change.message()), change.subject())
            elif ":lambda:" in action:
                eventbridge._dispatch_to_lambda(action, json.dumps(change.lambda_event()))
        except Exception:
            # As in CloudWatch, a failed action changes neither the alarm nor its other actions.
            _LOGGER.exception("the action %s of %s failed", action, change.alarm["AlarmName"])


@cache
def _names_of_regions() -> Mapping[str, str]:
    partitions = botocore.session.get_session().get_data("endpoints")["partitions"]
    return {
        name: region["description"]
        for partition in partitions
        for name, region in partition["regions"].items()
    }


def _region_name() -> str:
    return _names_of_regions().get(get_region(), get_region())


def _record_history(*given: Any, **named: Any) -> None:
    """Record a change at the time of its evaluation."""
    _record_plain(*given, **named)
    if _now:
        cloudwatch._history_entries()[-1]["Timestamp"] = cloudwatch._ts_iso(_now[-1])


def _put_composite_alarm(params: Mapping[str, Any], content: Mapping[str, Any], *protocol: bool) -> Any:
    """Store a composite alarm with its suppressor."""
    is_cbor, is_json = protocol
    request = content if is_cbor or is_json else {name: cloudwatch._p(params, name) for name in params}
    name = request.get("AlarmName", "")
    given = {key: request[key] for key in _SUPPRESSOR if request.get(key) not in (None, "")}
    if given and len(given) < len(_SUPPRESSOR):
        missing = ", ".join(key for key in _SUPPRESSOR if key not in given)
        return cloudwatch._error(
            "ValidationError", f"a suppressor also needs {missing}", 400, use_json=is_json, use_cbor=is_cbor
        )
    former = _suppressors.pop(name, None)
    if given:
        _suppressors[name] = given
    if former and former != given:
        # Replacing the suppressor ends its periods.
        _suppressed.pop(name, None)
    answer = _put_plain(params, content, *protocol)
    if alarm := cloudwatch._composite_alarms.get(name):
        alarm.update(given)
    return answer
