"""Metrics of log events: the examples of AWS's documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference_local.emulator.alarms.filter_pattern import parse_pattern
from inference_local.emulator.alarms.log_metrics import (
    LogMetric,
    embedded_metrics,
    filtered_metric,
)

AT = 1394793518.0
NAMED: dict[str, Any] = {"metricName": "m", "metricNamespace": "MyNamespace"}


def filtered(pattern: str, message: str, **transformation: Any) -> LogMetric | None:
    values = parse_pattern(pattern)(message)
    return None if values is None else filtered_metric({**NAMED, **transformation}, values, AT)


def test_a_value_of_json() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html#publishing-values-found-in-logs
    message = json.dumps({"latency": 50, "requestType": "GET"})
    found = filtered("{ $.latency = * }", message, metricValue="$.latency")
    assert found == LogMetric("MyNamespace", "m", {}, "None", AT, (50.0,))
    assert filtered("{ $.latency = * }", message, metricValue="$.requestType") is None


APACHE = '127.0.0.1 - - [24/Sep/2013:11:49:52 -0700] "GET /index.html HTTP/1.1" 404 287'
FIELDS = "[ip, id, user, timestamp, request, status_code, size]"


@pytest.mark.parametrize("value", ["$size", "$7"])
def test_a_value_of_fields_with_unit_and_dimension(value: str) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/ExtractBytesExample.html
    found = filtered(FIELDS, APACHE, metricValue=value, unit="Bytes", dimensions={"IP": "$ip"})
    assert found == LogMetric("MyNamespace", "m", {"IP": "127.0.0.1"}, "Bytes", AT, (287.0,))


def test_a_dimension_of_json_must_be_there() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html#logs-metric-filters-JSON
    pattern = '{ $.eventType = "*" && $.sourceIPAddress != 123.123.* }'
    message = json.dumps({"eventType": "UpdateTrail", "sourceIPAddress": "111.111.111.111"})
    found = filtered(pattern, message, metricValue="1", dimensions={"eventType": "$.eventType"})
    assert found is not None
    assert found.dimensions == {"eventType": "UpdateTrail"}
    assert filtered(pattern, message, metricValue="1", dimensions={"user": "$.user"}) is None


EMBEDDED: dict[str, Any] = {
    "_aws": {
        "Timestamp": 1574109732004,
        "CloudWatchMetrics": [
            {
                "Namespace": "lambda-function-metrics",
                "Dimensions": [["functionVersion"]],
                "Metrics": [{"Name": "time", "Unit": "Milliseconds", "StorageResolution": 60}],
            }
        ],
    },
    "functionVersion": "$LATEST",
    "time": 100,
    "requestId": "989ffbf8-9ace-4817-a57c-e4dd734019ee",
}
TIMED = LogMetric(
    "lambda-function-metrics",
    "time",
    {"functionVersion": "$LATEST"},
    "Milliseconds",
    1574109732.004,
    (100.0,),
)


@pytest.mark.parametrize("prefix", ["", "2026-11-23T09:00:00Z 989ffbf8 "])
def test_the_example_of_the_embedded_metric_format(prefix: str) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    assert list(embedded_metrics(prefix + json.dumps(EMBEDDED))) == [TIMED]


def test_every_dimension_set_is_a_metric_and_arrays_are_values() -> None:
    changed = json.loads(json.dumps(EMBEDDED))
    changed["_aws"]["CloudWatchMetrics"][0]["Dimensions"] = [["functionVersion"], []]
    changed["time"] = [1, 2.5]
    found = list(embedded_metrics(json.dumps(changed)))
    assert [(each.dimensions, each.values) for each in found] == [
        ({"functionVersion": "$LATEST"}, (1.0, 2.5)),
        ({}, (1.0, 2.5)),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"time": "100"},
        {"time": [1, "x"]},
        {"time": [1] * 101},
        {"functionVersion": 3},
        {"_aws": {"CloudWatchMetrics": EMBEDDED["_aws"]["CloudWatchMetrics"]}},
    ],
)
def test_a_wrong_document_has_no_metrics(change: dict[str, Any]) -> None:
    assert list(embedded_metrics(json.dumps({**EMBEDDED, **change}))) == []


@pytest.mark.parametrize("message", ["ERROR", '{"_aws": ', '"_aws"', "[1]"])
def test_other_messages_have_no_metrics(message: str) -> None:
    assert list(embedded_metrics(message)) == []
