"""What CloudWatch sends when an alarm changes its state.

- events of EventBridge: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
- events of Lambda actions: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html
- messages of SNS actions: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from inference_local.emulator.alarms.metric_alarms import moment

# Whether a composite alarm takes its actions while it has a suppressor alarm.
#
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-suppression.html

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


EVENT_SOURCE: Final = "aws.cloudwatch"
EVENT_TYPE: Final = "CloudWatch Alarm State Change"
#: The parameter that lists the actions of a state.
ACTIONS: Final[Mapping[str, str]] = {
    "ALARM": "AlarmActions",
    "OK": "OKActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}
#: Parameters of composite alarms that are part of the configuration in an event.
_COMPOSITE_KEYS: Final = (
    "AlarmRule",
    "ActionsSuppressor",
    "ActionsSuppressorWaitPeriod",
    "ActionsSuppressorExtensionPeriod",
)


@dataclass(frozen=True, slots=True)
class AlarmState:
    """A state of an alarm."""

    value: str
    """The state."""
    reason: str
    """Why."""
    reason_data: str | None
    """The same as JSON. None if there is none."""
    at_seconds: float
    """When the alarm got it, in seconds since 1970."""
    suppressed_by: str | None = None
    """What keeps a composite alarm from its actions: ``Alarm``, ``WaitPeriod`` or ``ExtensionPeriod``."""

    def content(self) -> dict[str, Any]:
        """Return the state as an event writes it."""
        content: dict[str, Any] = {"value": self.value, "reason": self.reason}
        if self.reason_data is not None:
            content["reasonData"] = self.reason_data
        content["timestamp"] = moment(self.at_seconds)
        if self.suppressed_by:
            content["actionsSuppressedBy"] = self.suppressed_by
            content["actionsSuppressedReason"] = f"Actions suppressed by {self.suppressed_by}"
        return content


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change of an alarm's state."""

    alarm: Mapping[str, Any]
    """Parameters of PutMetricAlarm or PutCompositeAlarm, with `AlarmArn`."""
    previous: AlarmState
    state: AlarmState
    account: str
    region: str
    """`account`, `region`: Where the alarm is."""
    region_name: str
    """Name of the region for people."""

    def event_detail(self) -> dict[str, Any]:
        """Return `detail` of the event of type `EVENT_TYPE`."""
        return {
            "alarmName": self.alarm["AlarmName"],
            "state": self.state.content(),
            "previousState": self.previous.content(),
            "configuration": configuration(self.alarm),
        }

    def lambda_event(self) -> dict[str, Any]:
        """Return the event of a function that is an action."""
        return {
            "source": EVENT_SOURCE,
            "alarmArn": self.alarm["AlarmArn"],
            "accountId": self.account,
            "time": moment(self.state.at_seconds),
            "region": self.region,
            "alarmData": self.event_detail(),
        }

    def subject(self) -> str:
        """Return the subject of the message to a topic that is an action."""
        return f'{self.state.value}: "{self.alarm["AlarmName"]}" in {self.region_name}'[:100]

    def message(self) -> dict[str, Any]:
        """Return the message to a topic that is an action."""
        return {
            "AlarmName": self.alarm["AlarmName"],
            "AlarmDescription": self.alarm.get("AlarmDescription") or None,
            "AWSAccountId": self.account,
            "AlarmConfigurationUpdatedTimestamp": moment(
                self.alarm.get("AlarmConfigurationUpdatedTimestamp") or self.state.at_seconds
            ),
            "NewStateValue": self.state.value,
            "NewStateReason": self.state.reason,
            "StateChangeTime": moment(self.state.at_seconds),
            "Region": self.region_name,
            "AlarmArn": self.alarm["AlarmArn"],
            "OldStateValue": self.previous.value,
            **{name: list(self.alarm.get(name) or ()) for name in ("OKActions", "AlarmActions")},
            "InsufficientDataActions": list(self.alarm.get("InsufficientDataActions") or ()),
            **self._watched(),
        }

    def actions(self) -> Sequence[str]:
        """Return the ARNs of the new state's actions. Here, alarms on PromQL take none."""
        if not self.alarm.get("ActionsEnabled", True) or "EvaluationCriteria" in self.alarm:
            return ()
        return tuple(self.alarm.get(ACTIONS[self.state.value]) or ())

    def _watched(self) -> dict[str, Any]:
        if "AlarmRule" in self.alarm:
            return {"AlarmRule": self.alarm["AlarmRule"]}
        return {"Trigger": _trigger(self.alarm)}


def configuration(alarm: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of an alarm as its events write it.

    alarm: Parameters of the alarm. AWS does not document what events say of the query of an alarm on PromQL,
        so only its description is in them.
    """
    found: dict[str, Any] = {}
    if "AlarmRule" in alarm:
        names = {name: name[0].lower() + name[1:] for name in _COMPOSITE_KEYS}
        found = {key: alarm[name] for name, key in names.items() if alarm.get(name) is not None}
    elif alarm.get("Metrics"):
        found["metrics"] = [_query(query) for query in alarm["Metrics"]]
    elif "EvaluationCriteria" in alarm:
        found["metrics"] = []
    else:
        identifier = str(uuid.uuid5(uuid.NAMESPACE_URL, alarm["AlarmArn"]))
        stat = alarm.get("ExtendedStatistic") or alarm.get("Statistic")
        single = {"Metric": alarm, "Period": alarm["Period"], "Stat": stat, "Unit": alarm.get("Unit")}
        found["metrics"] = [_query({"Id": identifier, "MetricStat": single})]
    if alarm.get("AlarmDescription"):
        found["description"] = alarm["AlarmDescription"]
    return found


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"id": query["Id"]}
    for name in ("Expression", "Label"):
        if query.get(name):
            content[name.lower()] = query[name]
    if stat := query.get("MetricStat"):
        metric = stat["Metric"]
        content["metricStat"] = {
            "metric": {
                "namespace": metric["Namespace"],
                "name": metric["MetricName"],
                "dimensions": {each["Name"]: each["Value"] for each in metric.get("Dimensions") or ()},
            },
            "period": int(stat["Period"]),
            "stat": stat["Stat"],
            **({"unit": stat["Unit"]} if stat.get("Unit") else {}),
        }
    content["returnData"] = _returns_data(query)
    return content


def _returns_data(query: Mapping[str, Any]) -> bool:
    return str(query.get("ReturnData", True)).lower() == "true"


def _trigger(alarm: Mapping[str, Any]) -> dict[str, Any]:
    stats = (query["MetricStat"] for query in alarm.get("Metrics") or () if query.get("MetricStat"))
    common = {
        "Period": next((int(stat["Period"]) for stat in stats), alarm.get("Period")),
        "EvaluationPeriods": alarm["EvaluationPeriods"],
        **({"DatapointsToAlarm": alarm["DatapointsToAlarm"]} if alarm.get("DatapointsToAlarm") else {}),
        "ComparisonOperator": alarm["ComparisonOperator"],
        "Threshold": alarm["Threshold"],
        "TreatMissingData": alarm.get("TreatMissingData") or "missing",
        "EvaluateLowSampleCountPercentile": alarm.get("EvaluateLowSampleCountPercentile") or "",
    }
    if alarm.get("Metrics"):
        return {**common, "Metrics": [_message_query(query) for query in alarm["Metrics"]]}
    statistic = {"StatisticType": "Statistic", "Statistic": str(alarm.get("Statistic")).upper()}
    if alarm.get("ExtendedStatistic"):
        statistic = {
            "StatisticType": "ExtendedStatistic",
            "ExtendedStatistic": alarm["ExtendedStatistic"],
        }
    return {
        **_message_metric(alarm),
        **statistic,
        "Unit": alarm.get("Unit"),
        **common,
    }


def _message_query(query: Mapping[str, Any]) -> dict[str, Any]:
    content = {name: query[name] for name in ("Expression", "Id", "Label") if query.get(name)}
    if stat := query.get("MetricStat"):
        metric = _message_metric(stat["Metric"])
        content["MetricStat"] = {"Metric": metric, "Period": int(stat["Period"]), "Stat": stat["Stat"]}
    return {**content, "ReturnData": _returns_data(query)}


def _message_metric(metric: Mapping[str, Any]) -> dict[str, Any]:
    dimensions = [{"value": each["Value"], "name": each["Name"]} for each in metric.get("Dimensions") or ()]
    return {"MetricName": metric["MetricName"], "Namespace": metric["Namespace"], "Dimensions": dimensions}
