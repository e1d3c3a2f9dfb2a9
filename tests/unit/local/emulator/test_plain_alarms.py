"""Gaps of the emulator that patches close. A test that fails says that a release has closed one.

Then run `test_alarm_states.py` and `test_metrics_of_logs.py` of `tests/local/emulator` without the patch, and
delete the patch if they pass.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from ministack.core.responses import request_scope
from ministack.services import cloudwatch, cloudwatch_logs, eventbridge
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS, _cw_metric_alarm_record

from inference_local.emulator.resource_handlers.composite_alarms import RESOURCE_TYPE

#: Requests in JSON, not in CBOR.
JSON = (False, True)


@pytest.fixture(autouse=True)
def account() -> Iterator[None]:
    with request_scope("210987654321", "us-west-2"):
        yield


def put(**changes: object) -> None:
    alarm = {
        "AlarmName": "twice",
        "Namespace": "Tests",
        "MetricName": "Latency",
        "Period": 60,
        "EvaluationPeriods": 2,
        "DatapointsToAlarm": 2,
        "Threshold": 3,
        "ComparisonOperator": "GreaterThanThreshold",
        **changes,
    }
    cloudwatch._put_metric_alarm({}, alarm, *JSON)
    value = {"MetricName": "Latency", "Value": 9, "Timestamp": time.time()}
    cloudwatch._put_metric_data({}, {"Namespace": "Tests", "MetricData": [value]}, *JSON)


def test_one_data_point_of_two_raises_an_alarm_without_an_event() -> None:
    # `patches/alarm_evaluation.py` and `patches/alarm_actions.py`
    put()
    assert cloudwatch._alarms["twice"]["StateValue"] == "ALARM"
    assert eventbridge._events_log_list() == []


def test_dimensions_and_metric_math_are_ignored() -> None:
    # `patches/alarm_evaluation.py`
    put(Dimensions=[{"Name": "Worker", "Value": "other"}])
    assert cloudwatch._alarms["twice"]["StateValue"] == "ALARM"
    put(Metrics=[{"Id": "e1", "Expression": "m1"}])
    assert "Metrics" not in cloudwatch._alarms["twice"]


def test_templates_have_no_metric_math_and_no_composite_alarms() -> None:
    # `patches/alarm_evaluation.py` and `resource_handlers/composite_alarms.py`
    with pytest.raises(ValueError, match="metric math"):
        _cw_metric_alarm_record("alarm", {"Metrics": [{"Id": "e1", "Expression": "m1"}]})
    assert RESOURCE_TYPE not in _RESOURCE_HANDLERS


def test_queries_have_no_expressions() -> None:
    # `patches/metric_queries.py`
    query = {
        "MetricDataQueries": [{"Id": "e1", "Expression": "TIME_SERIES(1)"}],
        "StartTime": 0,
        "EndTime": 60,
    }
    _, _, answer = cloudwatch._get_metric_data({}, query, *JSON)
    [result] = json.loads(answer)["MetricDataResults"]
    assert result["StatusCode"] == "InternalError"


def test_logs_have_no_metrics() -> None:
    # `patches/metrics_of_logs.py`
    cloudwatch_logs._create_log_group({"logGroupName": "plain"})
    cloudwatch_logs._create_log_stream({"logGroupName": "plain", "logStreamName": "one"})
    transformation = {"metricName": "Matches", "metricNamespace": "Tests", "metricValue": "1"}
    metric_filter = {"filterName": "all", "filterPattern": "", "metricTransformations": [transformation]}
    cloudwatch_logs._put_metric_filter({"logGroupName": "plain", **metric_filter})
    now = int(time.time() * 1000)
    directive = {"Namespace": "Tests", "Dimensions": [[]], "Metrics": [{"Name": "Embedded"}]}
    embedded = {"_aws": {"Timestamp": now, "CloudWatchMetrics": [directive]}, "Embedded": 1}
    event = {"timestamp": now, "message": json.dumps(embedded)}
    cloudwatch_logs._put_log_events({"logGroupName": "plain", "logStreamName": "one", "logEvents": [event]})
    assert not {name for _, name, _ in cloudwatch._metrics} & {"Matches", "Embedded"}
