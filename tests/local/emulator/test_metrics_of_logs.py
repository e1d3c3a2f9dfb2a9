"""Log events of the emulator yield the metrics of filters and of the embedded metric format."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.emulator.alarm_parts import PATIENCE_SECONDS, AlarmParts


@pytest.fixture
def parts(client: Callable[[str], Any]) -> AlarmParts:
    return AlarmParts(client)


def transformation(parts: AlarmParts, **changes: Any) -> list[dict[str, Any]]:
    return [{"metricName": "Errors", "metricNamespace": parts.space, "metricValue": "1", **changes}]


def test_the_default_value_is_that_of_minutes_without_a_match(parts: AlarmParts) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html: two records every
    # minute, both match in the first and none in the second.
    group = parts.log_group(
        filterPattern="Error", metricTransformations=transformation(parts, defaultValue=0)
    )
    parts.log(
        group, "This message contains an Error", "This message also contains an Error", at=parts.minute(1)
    )
    parts.log(group, "nothing", at=parts.minute(1) + 30)
    parts.log(group, "one", at=parts.minute(2))
    parts.log(group, "two", at=parts.minute(2) + 30)
    assert parts.sums("Errors") == {1: (2, 2), 2: (0, 1)}
    # A late match takes the place of the default value.
    parts.log(group, "an Error", at=parts.minute(2) + 45)
    assert parts.sums("Errors") == {1: (2, 2), 2: (1, 1)}


def test_a_filter_publishes_values_dimensions_and_units(parts: AlarmParts) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/ExtractBytesExample.html
    given = transformation(parts, metricValue="$size", unit="Bytes", dimensions={"Status": "$status_code"})
    group = parts.log_group(
        filterPattern="[ip, id, user, timestamp, request, status_code, size]", metricTransformations=given
    )
    for code, size in ((404, 287), (200, 3), (404, 308)):
        line = f'127.0.0.1 - - [24/Sep/2013:11:49:52 -0700] "GET /index.html HTTP/1.1" {code} {size}'
        parts.log(group, line, at=parts.minute(1))
    assert parts.sums("Errors", Status="404") == {1: (595, 2)}
    assert parts.sums("Errors", Status="200") == {1: (3, 1)}
    [described] = parts.logs.describe_metric_filters(logGroupName=group)["metricFilters"]
    assert described["metricTransformations"][0]["unit"] == "Bytes"


@pytest.mark.parametrize(
    ("pattern", "changes", "words"),
    [
        ("{ $.a = }", {}, "cannot be read"),
        ("{ $.a = 1 }", {"dimensions": {"a": "$.a"}, "defaultValue": 0}, "default value"),
        ("ERROR", {"dimensions": {"a": "$.a"}}, "only patterns of JSON"),
    ],
)
def test_a_wrong_filter_is_refused(
    parts: AlarmParts, pattern: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=words):
        parts.log_group(filterPattern=pattern, metricTransformations=transformation(parts, **changes))


_FUNCTION = """
import json, time
def handler(event, context):
    directive = {"Namespace": event["space"], "Dimensions": [["Worker"]]}
    directive["Metrics"] = [{"Name": "Decisions"}]
    metadata = {"Timestamp": int(event["at"] * 1000), "CloudWatchMetrics": [directive]}
    print(json.dumps({"_aws": metadata, "Worker": "a", "Decisions": [1, 2]}))
"""


def test_what_a_function_prints_yields_embedded_metrics(
    client: Callable[[str], Any], parts: AlarmParts
) -> None:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", _FUNCTION)
    client("lambda").create_function(
        FunctionName="embedded",
        Runtime="python3.11",
        Handler="index.handler",
        Role="arn:aws:iam::123456789012:role/any",
        Code={"ZipFile": code.getvalue()},
    )
    payload = json.dumps({"space": parts.space, "at": parts.minute(1)})
    client("lambda").invoke(FunctionName="embedded", Payload=payload)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not parts.sums("Decisions", Worker="a"):
        assert time.monotonic() < deadline, "no metric came"
        time.sleep(0.05)
    assert parts.sums("Decisions", Worker="a") == {1: (3, 2)}


def test_queries_have_expressions_dimensions_and_the_newest_value_first(parts: AlarmParts) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
    for worker, values in (("a", (1, 2, 3)), ("b", (10, None, 30))):
        parts.put("Busy", *values, Dimensions=[{"Name": "Worker", "Value": worker}])

    def stat(*dimensions: str) -> dict[str, Any]:
        named = [{"Name": "Worker", "Value": worker} for worker in dimensions]
        metric = {"Namespace": parts.space, "MetricName": "Busy", "Dimensions": named}
        return {"Metric": metric, "Period": 60, "Stat": "Sum"}

    queries = [
        {"Id": "all", "Expression": "SUM([a, b])"},
        {"Id": "filled", "Expression": "FILL(b, 0)"},
        {"Id": "a", "MetricStat": stat("a")},
        {"Id": "b", "MetricStat": stat("b"), "ReturnData": False},
        {"Id": "none", "MetricStat": stat()},
    ]
    span = {"StartTime": parts.minute(0), "EndTime": parts.minute(3)}
    answer = parts.cloudwatch.get_metric_data(MetricDataQueries=queries, **span)
    found = {result["Id"]: result["Values"] for result in answer["MetricDataResults"]}
    assert found == {"all": [33, 2, 11], "filled": [30, 0, 10], "a": [3, 2, 1], "none": []}
    last = answer["MetricDataResults"][0]["Timestamps"][0]
    assert last.timestamp() == parts.minute(2)
    oldest = parts.cloudwatch.get_metric_data(
        MetricDataQueries=queries[2:3], ScanBy="TimestampAscending", **span
    )
    assert oldest["MetricDataResults"][0]["Values"] == [1, 2, 3]
    with pytest.raises(ClientError, match=r"SEARCH .* not emulated"):
        parts.cloudwatch.get_metric_data(
            MetricDataQueries=[{"Id": "s", "Expression": "SEARCH('x')"}, *queries[2:3]], **span
        )


def test_templates_have_metric_math_composite_alarms_and_filters(
    apply_stack: Callable[..., Any], parts: AlarmParts
) -> None:
    group = parts.log_group()
    metric = {"Namespace": parts.space, "MetricName": "Errors"}
    stat = {"Metric": metric, "Period": "60", "Stat": "Sum"}
    alarm = {
        "AlarmName": f"rate-{group}",
        "EvaluationPeriods": "1",
        "Threshold": "1",
        "ComparisonOperator": "GreaterThanThreshold",
        "Metrics": [
            {"Id": "e1", "Expression": "RATE(m1)"},
            {"Id": "m1", "MetricStat": stat, "ReturnData": "false"},
        ],
    }
    composite = {
        "AlarmName": f"any-{group}",
        "AlarmRule": f'ALARM("rate-{group}")',
        "ActionsEnabled": "false",
    }
    metric_filter = {
        "LogGroupName": group,
        "FilterPattern": "{ $.level = ERROR }",
        "MetricTransformations": [
            {"MetricName": "Errors", "MetricNamespace": parts.space, "MetricValue": "1", "DefaultValue": 0}
        ],
    }
    resources = {
        "Rate": ("AWS::CloudWatch::Alarm", alarm),
        "Filter": ("AWS::Logs::MetricFilter", metric_filter),
    }
    assert apply_stack(f"math-{group}", resources).reasons == ()
    whole = {**resources, "Any": ("AWS::CloudWatch::CompositeAlarm", composite)}
    assert apply_stack(f"math-{group}", whole).status == "UPDATE_COMPLETE"
    assert parts.described(f"rate-{group}")["Metrics"][1]["MetricStat"]["Period"] == 60
    assert parts.described(f"any-{group}")["ActionsEnabled"] is False
    parts.log(group, '{"level": "ERROR"}', at=parts.minute(1))
    assert parts.sums("Errors") == {1: (1, 1)}
    assert apply_stack(f"math-{group}", resources).status == "UPDATE_COMPLETE"
    kept = parts.cloudwatch.describe_alarms(AlarmNames=[f"any-{group}"], AlarmTypes=["CompositeAlarm"])
    assert kept["CompositeAlarms"] == []
