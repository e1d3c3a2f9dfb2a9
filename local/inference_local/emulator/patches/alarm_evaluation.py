"""Gives alarms the states, events and actions that CloudWatch gives them.

The emulator compares an alarm with its metric when data arrives. It ignores dimensions, units, periods, the
number of data points, missing data and metric math, sends no event to EventBridge, and takes no actions but
those on topics. With this patch, `evaluate_alarms` computes the states at a given time as
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html describes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ministack.core.responses import request_scope
from ministack.services import cloudwatch
from ministack.services.cloudformation import provisioners

from inference_local.emulator.alarms.alarm_definition import MetricStat, parse_alarm
from inference_local.emulator.alarms.metric_alarms import Source, evaluate, newest_value
from inference_local.emulator.alarms.period_statistics import MetricSample
from inference_local.emulator.alarms.promql_definition import CRITERIA
from inference_local.emulator.patches import alarm_actions, promql_evaluation
from inference_local.emulator.patches.metric_queries import stored_samples

_LOGGER = logging.getLogger("alarms")
_put_plain = cloudwatch._put_metric_alarm
_set_plain = cloudwatch._set_alarm_state
_record_plain = provisioners._cw_metric_alarm_record
#: Parameters of alarms on one metric, which the emulator fills with defaults.
_SINGLE = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Dimensions", "Unit")
_ADDED = ("Metrics", "EvaluateLowSampleCountPercentile")
#: Account, region and name of an alarm to the number of its last evaluation's interval.
_evaluated: dict[tuple[str, str, str], float] = {}


def apply() -> None:
    """Apply the patch."""
    cloudwatch._evaluate_alarm = lambda _: None
    cloudwatch._evaluate_all_alarms = lambda: None
    cloudwatch._put_metric_alarm = _put_metric_alarm
    cloudwatch._set_alarm_state = _set_alarm_state
    provisioners._cw_metric_alarm_record = _template_record
    alarm_actions.apply()


def evaluate_alarms(at_seconds: float, *, now_seconds: float | None = None, speed: float = 1.0) -> list[str]:
    """Evaluate the alarms that are due, and act on changes.

    at_seconds: The moment of the evaluation, in seconds since 1970.
    now_seconds: The time that changes get. By default the moment itself.
    speed: How much faster than time the clock of alarms is. Times of samples are converted.
    Returns: What changed, one line per change of an alarm or of a contributor.
    """
    now = at_seconds if now_seconds is None else now_seconds
    changes: list[str] = []
    known = set(cloudwatch._alarms._data)
    for key in [key for key in _evaluated if key not in known]:
        del _evaluated[key]
        with request_scope(*key[:2]):
            promql_evaluation.forget_contributors(key[2])
    for account, region, name in sorted(known):
        with request_scope(account, region):
            changes += _evaluate_due(cloudwatch._alarms[name], at_seconds, now, speed)
    alarm_actions.follow_suppressions(now)
    return changes


def _evaluate_due(record: dict[str, Any], at_seconds: float, now: float, speed: float) -> list[str]:
    """Evaluate an alarm if its time has come."""
    on_promql = CRITERIA in record
    every_seconds = record["EvaluationInterval"] if on_promql else parse_alarm(record).every_seconds
    key = (*cloudwatch._alarms._prefix(), record["AlarmName"])
    interval = at_seconds // every_seconds
    if _evaluated.get(key) == interval:
        return []
    _evaluated[key] = interval
    if on_promql:
        return list(promql_evaluation.evaluate_promql(record, at_seconds, now))
    change = _evaluate_metrics(record, at_seconds, now, speed)
    return [] if change is None else [change]


def _evaluate_metrics(record: dict[str, Any], at_seconds: float, now: float, speed: float) -> str | None:
    alarm = parse_alarm(record)

    try:
        found = evaluate(alarm, _source(at_seconds, now, speed), at_seconds, now_seconds=now)
    except ValueError as error:
        _LOGGER.warning("alarm %s cannot be evaluated: %s", record["AlarmName"], error)
        return None
    before = record["StateValue"]
    if found is None or found.state == before:
        return None
    record.update(
        StateValue=found.state,
        StateReason=found.reason,
        StateReasonData=found.reason_data,
        StateUpdatedTimestamp=now,
        StateTransitionedTimestamp=now,
    )
    alarm_actions.act(record, before, now)
    return f"{record['AlarmName']}: {before} -> {found.state}"


def watched_value(
    record: Mapping[str, Any], at_seconds: float, *, now_seconds: float, speed: float
) -> float | None:
    """Return the newest data point of what an alarm watches, None if there is none.

    record: The alarm. The others are those of `evaluate_alarms`.
    """
    return newest_value(parse_alarm(record), _source(at_seconds, now_seconds, speed), at_seconds)


def _source(at_seconds: float, now: float, speed: float) -> Source:
    """Return what gives an alarm the stored samples, at their times on the alarms' clock."""

    def source(metric: MetricStat, start: float, end: float) -> Sequence[MetricSample]:
        samples = (
            replace(sample, at=at_seconds - (now - sample.at) * speed) for sample in stored_samples(metric)
        )
        return [sample for sample in samples if start <= sample.at < end]

    return source


def _put_metric_alarm(params: Mapping[str, Any], content: Mapping[str, Any], *protocol: bool) -> Any:
    """Store an alarm with all its parameters, or refuse one that cannot be evaluated."""
    is_cbor, is_json = protocol
    request = content if is_cbor or is_json else {name: cloudwatch._p(params, name) for name in params}
    try:
        parse_alarm(request)
    except ValueError as error:
        # In requests of the old query protocol, `Metrics` is not read and MetricName is missing.
        return cloudwatch._error("ValidationError", str(error), 400, use_json=is_json, use_cbor=is_cbor)
    answer = _put_plain(params, content, *protocol)
    if record := cloudwatch._alarms.get(request["AlarmName"]):
        _complete(record, request)
    return answer


def _template_record(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an alarm of a template."""
    if CRITERIA in properties:
        return promql_evaluation.promql_record(name, properties)
    parse_alarm(properties)
    # The emulator demands a metric.
    stand_in = {"MetricName": "of Metrics", "Namespace": "of Metrics"} if properties.get("Metrics") else {}
    plain = {key: value for key, value in properties.items() if key != "Metrics"}
    record: dict[str, Any] = _record_plain(name, {**plain, **stand_in})
    _complete(record, properties)
    return record


def _complete(record: dict[str, Any], request: Mapping[str, Any]) -> None:
    """Add what the emulator leaves out, and remove its defaults."""
    record.update({name: request[name] for name in _ADDED if request.get(name)})
    if record.get("Metrics"):
        record["Metrics"] = [_typed(query) for query in record["Metrics"]]
        for name in _SINGLE:
            record.pop(name, None)
        return
    if record.get("ExtendedStatistic"):
        record.pop("Statistic", None)
    if record["Namespace"] == "AWS/DynamoDB" and not request.get("TreatMissingData"):
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
        record["TreatMissingData"] = "ignore"


def _typed(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query with the types of the API. Templates may have texts in their place."""
    typed = dict(query)
    if query.get("MetricStat"):
        typed["MetricStat"] = {**query["MetricStat"], "Period": int(query["MetricStat"]["Period"])}
    if query.get("Period"):
        typed["Period"] = int(query["Period"])
    if "ReturnData" in query:
        typed["ReturnData"] = str(query["ReturnData"]).lower() == "true"
    return typed


def _set_alarm_state(params: Mapping[str, Any], content: Mapping[str, Any], *protocol: bool) -> Any:
    """Set a state. The data of the former reason do not stay."""
    name = content.get("AlarmName") or cloudwatch._p(params, "AlarmName")
    if record := cloudwatch._alarms.get(name):
        record.pop("StateReasonData", None)
        record["StateTransitionedTimestamp"] = time.time()
    return _set_plain(params, content, *protocol)
