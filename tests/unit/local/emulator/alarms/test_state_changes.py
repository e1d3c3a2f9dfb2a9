"""What is sent when an alarm changes its state: the samples of AWS's documents."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from inference_local.emulator.alarms.state_changes import AlarmState, StateChange

EC2 = {"Namespace": "AWS/EC2", "Dimensions": [{"Name": "InstanceId", "Value": "i-12345678901234567"}]}
CPU: dict[str, Any] = {
    "AlarmName": "ServerCpuTooHigh",
    "AlarmArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:ServerCpuTooHigh",
    "AlarmDescription": "Goes into alarm when server CPU utilization is too high!",
    **EC2,
    "MetricName": "CPUUtilization",
    "Statistic": "Average",
    "Period": 300,
    "EvaluationPeriods": 1,
    "DatapointsToAlarm": 1,
    "Threshold": 50.0,
    "ComparisonOperator": "GreaterThanThreshold",
    "TreatMissingData": "missing",
    "OKActions": [],
    "AlarmActions": ["arn:aws:sns:us-east-1:123456789012:alerts"],
}


def network(identifier: str, name: str) -> dict[str, Any]:
    metric = {"Metric": {**EC2, "MetricName": name}, "Period": 300, "Stat": "Maximum"}
    return {"Id": identifier, "ReturnData": False, "MetricStat": metric}


TOTAL: dict[str, Any] = {
    **{name: CPU[name] for name in ("EvaluationPeriods", "ComparisonOperator")},
    "Threshold": 10000.0,
    "AlarmName": "TotalNetworkTrafficTooHigh",
    "AlarmArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:TotalNetworkTrafficTooHigh",
    "AlarmDescription": "Goes into alarm if total network traffic exceeds 10Kb",
    "Metrics": [
        {"Id": "e1", "Expression": "SUM(METRICS())", "Label": "Total Network Traffic", "ReturnData": True},
        network("m1", "NetworkIn"),
        network("m2", "NetworkOut"),
    ],
}
BOTH: dict[str, Any] = {
    "AlarmName": "ServiceAggregatedAlarm",
    "AlarmArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:ServiceAggregatedAlarm",
    "AlarmRule": "ALARM(ServerCpuTooHigh) OR ALARM(TotalNetworkTrafficTooHigh)",
    "ActionsSuppressor": "ServiceMaintenanceAlarm",
    "ActionsSuppressorWaitPeriod": 120,
    "ActionsSuppressorExtensionPeriod": 180,
}


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def change(alarm: dict[str, Any], previous: AlarmState, state: AlarmState) -> StateChange:
    return StateChange(alarm, previous, state, "123456789012", "us-east-1", "US East (N. Virginia)")


WELL = AlarmState("OK", "was not greater", '{"version":"1.0"}', at("2019-10-01T13:56:40.987+00:00"))
HIGH = AlarmState("ALARM", "was greater", '{"version":"1.0","x":1}', at("2019-10-02T17:04:40.989+00:00"))
UNCHECKED = AlarmState(
    "INSUFFICIENT_DATA", "Unchecked: Initial alarm creation", None, at("2019-10-02T17:20:03.642+00:00")
)


def test_the_event_of_an_alarm_on_one_metric() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
    detail = change(CPU, WELL, HIGH).event_detail()
    identifier = detail["configuration"]["metrics"][0].pop("id")
    assert len(identifier) == 36
    assert detail == {
        "alarmName": "ServerCpuTooHigh",
        "configuration": {
            "description": "Goes into alarm when server CPU utilization is too high!",
            "metrics": [
                {
                    "metricStat": {
                        "metric": {
                            "dimensions": {"InstanceId": "i-12345678901234567"},
                            "name": "CPUUtilization",
                            "namespace": "AWS/EC2",
                        },
                        "period": 300,
                        "stat": "Average",
                    },
                    "returnData": True,
                }
            ],
        },
        "previousState": {
            "reason": "was not greater",
            "reasonData": '{"version":"1.0"}',
            "timestamp": "2019-10-01T13:56:40.987+0000",
            "value": "OK",
        },
        "state": {
            "reason": "was greater",
            "reasonData": '{"version":"1.0","x":1}',
            "timestamp": "2019-10-02T17:04:40.989+0000",
            "value": "ALARM",
        },
    }


def test_the_event_of_an_alarm_on_metric_math() -> None:
    # The same document, "State change for a metric math alarm".
    detail = change(TOTAL, UNCHECKED, HIGH).event_detail()
    stat: dict[str, Any] = {
        "metric": {"dimensions": {"InstanceId": "i-12345678901234567"}, "namespace": "AWS/EC2"},
        "period": 300,
        "stat": "Maximum",
    }
    stats = {
        name: {**stat, "metric": {**stat["metric"], "name": name}} for name in ("NetworkIn", "NetworkOut")
    }
    assert detail["configuration"] == {
        "description": "Goes into alarm if total network traffic exceeds 10Kb",
        "metrics": [
            {
                "expression": "SUM(METRICS())",
                "id": "e1",
                "label": "Total Network Traffic",
                "returnData": True,
            },
            {"id": "m1", "metricStat": stats["NetworkIn"], "returnData": False},
            {"id": "m2", "metricStat": stats["NetworkOut"], "returnData": False},
        ],
    }
    assert detail["previousState"] == {
        "reason": "Unchecked: Initial alarm creation",
        "timestamp": "2019-10-02T17:20:03.642+0000",
        "value": "INSUFFICIENT_DATA",
    }


def test_the_event_of_a_composite_alarm_with_a_suppressor() -> None:
    # The same document, "State change for a composite alarm with a suppressor alarm".
    held = AlarmState("ALARM", "transitioned", "{}", at("2022-07-22T15:57:45.394+00:00"), "WaitPeriod")
    detail = change(BOTH, WELL, held).event_detail()
    assert detail["configuration"] == {
        "alarmRule": "ALARM(ServerCpuTooHigh) OR ALARM(TotalNetworkTrafficTooHigh)",
        "actionsSuppressor": "ServiceMaintenanceAlarm",
        "actionsSuppressorWaitPeriod": 120,
        "actionsSuppressorExtensionPeriod": 180,
    }
    assert detail["state"] == {
        "actionsSuppressedBy": "WaitPeriod",
        "actionsSuppressedReason": "Actions suppressed by WaitPeriod",
        "value": "ALARM",
        "reason": "transitioned",
        "reasonData": "{}",
        "timestamp": "2022-07-22T15:57:45.394+0000",
    }


def test_the_event_of_a_function() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html
    changed = change(CPU, WELL, HIGH)
    event = changed.lambda_event()
    assert event.pop("alarmData") == changed.event_detail()
    assert event == {
        "source": "aws.cloudwatch",
        "alarmArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:ServerCpuTooHigh",
        "accountId": "123456789012",
        "time": "2019-10-02T17:04:40.989+0000",
        "region": "us-east-1",
    }


def test_the_message_to_a_topic() -> None:
    # The fields of a message that CloudWatch sent, as it is public in many repositories.
    changed = change({**CPU, "AlarmConfigurationUpdatedTimestamp": WELL.at_seconds}, WELL, HIGH)
    assert changed.subject() == 'ALARM: "ServerCpuTooHigh" in US East (N. Virginia)'
    assert changed.message() == {
        "AlarmName": "ServerCpuTooHigh",
        "AlarmDescription": "Goes into alarm when server CPU utilization is too high!",
        "AWSAccountId": "123456789012",
        "AlarmConfigurationUpdatedTimestamp": "2019-10-01T13:56:40.987+0000",
        "NewStateValue": "ALARM",
        "NewStateReason": "was greater",
        "StateChangeTime": "2019-10-02T17:04:40.989+0000",
        "Region": "US East (N. Virginia)",
        "AlarmArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:ServerCpuTooHigh",
        "OldStateValue": "OK",
        "OKActions": [],
        "AlarmActions": ["arn:aws:sns:us-east-1:123456789012:alerts"],
        "InsufficientDataActions": [],
        "Trigger": {
            "MetricName": "CPUUtilization",
            "Namespace": "AWS/EC2",
            "StatisticType": "Statistic",
            "Statistic": "AVERAGE",
            "Unit": None,
            "Dimensions": [{"value": "i-12345678901234567", "name": "InstanceId"}],
            "Period": 300,
            "EvaluationPeriods": 1,
            "DatapointsToAlarm": 1,
            "ComparisonOperator": "GreaterThanThreshold",
            "Threshold": 50.0,
            "TreatMissingData": "missing",
            "EvaluateLowSampleCountPercentile": "",
        },
    }


def test_messages_of_metric_math_and_of_composite_alarms() -> None:
    trigger = change(TOTAL, UNCHECKED, HIGH).message()["Trigger"]
    assert [query["Id"] for query in trigger["Metrics"]] == ["e1", "m1", "m2"]
    assert trigger["Metrics"][1]["MetricStat"]["Metric"]["MetricName"] == "NetworkIn"
    assert trigger["Period"] == 300
    message = change(BOTH, WELL, HIGH).message()
    assert message["AlarmRule"] == BOTH["AlarmRule"]
    assert "Trigger" not in message
    assert json.loads(json.dumps(message)) == message


def test_actions_are_those_of_the_new_state() -> None:
    assert change(CPU, WELL, HIGH).actions() == ("arn:aws:sns:us-east-1:123456789012:alerts",)
    assert change(CPU, HIGH, WELL).actions() == ()
    assert change({**CPU, "ActionsEnabled": False}, WELL, HIGH).actions() == ()
