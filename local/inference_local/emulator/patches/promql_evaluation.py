"""Evaluates alarms on PromQL, and tells of each contributor whose state changes.

The emulator has no alarms on PromQL. With this module, CloudFormation can create them, and if the emulator
knows a metrics service with the API of Prometheus, they change their states as
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-promql.html describes. Without one, they
stay OK, and nothing is computed. They take no actions: AWS does not document the form of their messages.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ministack.core.responses import AccountRegionScopedDict, get_account_id, get_region
from ministack.services import cloudwatch

from inference_blueprints.render.monitoring.alarm_table import ContributorState
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from inference_local.emulator.alarms.promql_definition import (
    CONTRIBUTOR_EVENT_TYPE,
    CRITERIA,
    contributor_detail,
    contributor_id,
    parse_promql,
)
from inference_local.emulator.alarms.state_changes import AlarmState
from inference_local.emulator.patches import alarm_actions

_LOGGER = logging.getLogger("alarms")
_handle_plain = cloudwatch.handle_request
_OPERATION = ".DescribeAlarmContributors"
#: Parameters that are texts, and those that are lists.
_TEXTS, _LISTS = ("AlarmDescription",), ("AlarmActions", "OKActions", "InsufficientDataActions")
_INITIAL = "Unchecked: Initial alarm creation"
#: Name of an alarm to its contributors by id.
_contributors = AccountRegionScopedDict()
#: The metrics service. Empty if there is none.
_metrics: list[CloudWatchPromql] = []


class _UnansweredError(Exception):
    """The metrics service did not answer a query."""


@dataclass(slots=True)
class _Contributor:
    attributes: Mapping[str, str]
    state: ContributorState
    reason: str = ""
    changed_at: float = 0.0


def apply() -> None:
    """Apply the patch."""
    cloudwatch.handle_request = _handle


def ask_metrics(address: str) -> None:
    """Evaluate alarms on PromQL with the answers of a metrics service.

    address: Its URL, without a path.
    """
    _metrics[:] = [CloudWatchPromql(address, lambda *request: request[2], failure=_UnansweredError)]


def promql_record(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of an alarm on PromQL. A changed alarm keeps its state.

    properties: Properties of the template.
    Raises ValueError if AWS would refuse one of them.
    """
    alarm, now = parse_promql(properties), time.time()
    # CloudWatch evaluates a new alarm from the state OK: no series has breached yet.
    state = {"StateValue": "OK", "StateReason": _INITIAL, "StateUpdatedTimestamp": now}
    former = cloudwatch._alarms.get(name) or {}
    return {
        "AlarmName": name,
        "AlarmArn": f"arn:aws:cloudwatch:{get_region()}:{get_account_id()}:alarm:{name}",
        **{key: str(properties.get(key) or "") for key in _TEXTS},
        **{key: list(properties.get(key) or ()) for key in _LISTS},
        "ActionsEnabled": str(properties.get("ActionsEnabled", True)).lower() == "true",
        CRITERIA: {
            "PromQLCriteria": {
                "Query": alarm.query,
                "PendingPeriod": alarm.pending_seconds,
                "RecoveryPeriod": alarm.recovery_seconds,
            }
        },
        "EvaluationInterval": alarm.every_seconds,
        **{key: former.get(key, value) for key, value in state.items()},
        "AlarmConfigurationUpdatedTimestamp": now,
    }


def evaluate_promql(record: dict[str, Any], at_seconds: float, now: float) -> Iterator[str]:
    """Evaluate an alarm on PromQL, and yield what changed, one line per change.

    record: The alarm.
    at_seconds: The moment by the clock of alarms, which measures the two periods.
    now: The moment by the clock of the metrics, at which the query is evaluated.
    """
    if not _metrics:
        return
    alarm, name = parse_promql(record), record["AlarmName"]
    try:
        answer = _metrics[0].instant(alarm.query, now)
    except _UnansweredError as error:
        _LOGGER.warning("alarm %s cannot be evaluated: %s", name, error)
        return
    returned = {contributor_id(series.labels): series.labels for series in answer}
    known: dict[str, _Contributor] = _contributors.setdefault(name, {})
    for identifier, labels in returned.items():
        state = ContributorState(alarm.pending_seconds, alarm.recovery_seconds)
        known.setdefault(identifier, _Contributor(labels, state))
    for identifier, each in list(known.items()):
        before = each.state.in_alarm
        after = each.state.evaluate(at_seconds, returned=identifier in returned)
        if after != before:
            _change(record, each, now)
            yield f"{name} {identifier}: {_value(in_alarm=before)} -> {_value(in_alarm=after)}"
        if not after and identifier not in returned:
            del known[identifier]
    raised = sum(each.state.in_alarm for each in known.values())
    former, value = record["StateValue"], _value(in_alarm=bool(raised))
    if value != former:
        reason = f"{raised} out of {len(known)} time series evaluated to ALARM"
        record.update(
            StateValue=value,
            StateReason=reason,
            StateUpdatedTimestamp=now,
            StateTransitionedTimestamp=now,
        )
        alarm_actions.act(record, former, now)
        yield f"{name}: {former} -> {value}"


def forget_contributors(name: str) -> None:
    """Forget the contributors of an alarm that is deleted."""
    _contributors.pop(name, None)


def _change(record: Mapping[str, Any], contributor: _Contributor, now: float) -> None:
    """Note a contributor's new state, and send the event of it."""
    returned = "returned" if contributor.state.in_alarm else "no longer returned"
    contributor.changed_at, contributor.reason = now, f"The query {returned} the time series"
    state = AlarmState(_value(in_alarm=contributor.state.in_alarm), contributor.reason, None, now)
    detail = contributor_detail(record, contributor.attributes, state)
    alarm_actions.send_event(CONTRIBUTOR_EVENT_TYPE, detail, record["AlarmArn"], now)


def _value(*, in_alarm: bool) -> str:
    return "ALARM" if in_alarm else "OK"


async def _handle(
    method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    """Answer DescribeAlarmContributors, which the emulator lacks, in JSON, the protocol of boto3.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarmContributors.html: the
    contributors that are in ALARM.
    """
    if not headers.get("x-amz-target", "").endswith(_OPERATION):
        answer: tuple[int, dict[str, str], bytes] = await _handle_plain(method, path, headers, body, query)
        return answer
    name = json.loads(body)["AlarmName"]
    if name not in cloudwatch._alarms:
        refused: tuple[int, dict[str, str], bytes] = cloudwatch._error(
            "ResourceNotFoundException", f"the alarm {name} does not exist", 404, use_json=True
        )
        return refused
    known: dict[str, _Contributor] = _contributors.get(name) or {}
    found: tuple[int, dict[str, str], bytes] = cloudwatch._json_ok(
        {
            "AlarmContributors": [
                {
                    "ContributorId": identifier,
                    "ContributorAttributes": dict(each.attributes),
                    "StateReason": each.reason,
                    "StateTransitionedTimestamp": each.changed_at,
                }
                for identifier, each in known.items()
                if each.state.in_alarm
            ]
        }
    )
    return found
