"""Services of ECS are scaled by Application Auto Scaling, through boto3: metrics, alarms, desired count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.local.ecs.running_cluster import CLUSTER, RunningCluster

WAITS = "import time; print('up', flush=True); time.sleep(3600)"
PLACE = {
    "ServiceNamespace": "ecs",
    "ResourceId": f"service/{CLUSTER}/scaled",
    "ScalableDimension": "ecs:service:DesiredCount",
}
METRIC = {"Namespace": "Load", "MetricName": "Load", "Dimensions": [{"Name": "role", "Value": "worker"}]}
MINUTE = 60.0


@pytest.fixture
def scaling(cluster: RunningCluster) -> Iterator[Any]:
    """A service of one to three tasks."""
    cluster.create("scaled", cluster.register("scaled", WAITS))
    client = cluster.emulator.client("application-autoscaling")
    client.register_scalable_target(**PLACE, MinCapacity=1, MaxCapacity=3)
    yield client
    client.deregister_scalable_target(**PLACE)
    cluster.delete("scaled")


def _track(scaling: Any) -> None:
    scaling.put_scaling_policy(
        **PLACE,
        PolicyName="load",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 10.0,
            "ScaleOutCooldown": 60,
            "ScaleInCooldown": 60,
            "CustomizedMetricSpecification": {**METRIC, "Statistic": "Average"},
        },
    )


def _measure(cluster: RunningCluster, begin: float, values: list[float]) -> float:
    """Put a value per minute, evaluate alarms each minute, and return the end."""
    metrics = cluster.emulator.client("cloudwatch")
    for minute, value in enumerate(values):
        at = begin + minute * MINUTE
        metrics.put_metric_data(
            Namespace=METRIC["Namespace"],
            MetricData=[
                {
                    "MetricName": METRIC["MetricName"],
                    "Dimensions": METRIC["Dimensions"],
                    "Timestamp": datetime.fromtimestamp(at + 1, UTC),
                    "Value": value,
                }
            ],
        )
        cluster.emulator.evaluate_alarms(at + MINUTE)
    return begin + len(values) * MINUTE


def test_a_service_follows_its_metric(cluster: RunningCluster, scaling: Any) -> None:
    _track(scaling)
    cluster.running("scaled", 1)
    begin = time.time() // MINUTE * MINUTE
    at = _measure(cluster, begin, [25.0, 25.0])
    assert cluster.service("scaled")["desiredCount"] == 1, "an alarm needs three minutes above the target"
    at = _measure(cluster, at, [25.0])
    assert cluster.service("scaled")["desiredCount"] == 3
    cluster.running("scaled", 3)
    at = _measure(cluster, at, [2.0] * 14)
    assert cluster.service("scaled")["desiredCount"] == 3, "an alarm needs 15 minutes below the target"
    _measure(cluster, at, [2.0])
    assert cluster.service("scaled")["desiredCount"] == 1
    cluster.running("scaled", 1)
    activities = scaling.describe_scaling_activities(**PLACE)["ScalingActivities"]
    assert [each["Cause"] for each in activities] == ["3 -> 1", "1 -> 3"]
    described = cluster.emulator.client("cloudwatch").describe_alarms(
        AlarmNamePrefix=f"TargetTracking-{PLACE['ResourceId']}-Alarm"
    )
    assert len(described["MetricAlarms"]) == 2


def test_a_service_follows_the_messages_of_its_queue(cluster: RunningCluster, scaling: Any) -> None:
    # As the templates scale batch workers: steps of exact numbers over waiting and working messages.
    policy = scaling.put_scaling_policy(
        **PLACE,
        PolicyName="backlog",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ExactCapacity",
            "MetricAggregationType": "Maximum",
            "StepAdjustments": [
                {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 1, "ScalingAdjustment": 2},
                {"MetricIntervalLowerBound": 1, "ScalingAdjustment": 3},
            ],
        },
    )["PolicyARN"]
    queues = cluster.emulator.client("sqs")
    queue = queues.create_queue(QueueName="shards")["QueueUrl"]
    names = {
        "waiting": "ApproximateNumberOfMessagesVisible",
        "working": "ApproximateNumberOfMessagesNotVisible",
    }
    cluster.emulator.client("cloudwatch").put_metric_alarm(
        AlarmName="backlog",
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        Threshold=1.5,
        EvaluationPeriods=1,
        AlarmActions=[policy],
        Metrics=[
            {"Id": "backlog", "Expression": "waiting + working", "ReturnData": True},
            *(
                {
                    "Id": identifier,
                    "MetricStat": {
                        "Metric": {
                            "Namespace": "AWS/SQS",
                            "MetricName": metric,
                            "Dimensions": [{"Name": "QueueName", "Value": "shards"}],
                        },
                        "Period": 60,
                        "Stat": "Maximum",
                    },
                    "ReturnData": False,
                }
                for identifier, metric in names.items()
            ),
        ],
    )
    for _ in range(2):
        queues.send_message(QueueUrl=queue, MessageBody="shard")
    queues.receive_message(QueueUrl=queue, VisibilityTimeout=600)
    at = (time.time() // MINUTE + 1) * MINUTE
    cluster.emulator.evaluate_alarms(at)
    assert cluster.service("scaled")["desiredCount"] == 1
    cluster.emulator.evaluate_alarms(at + MINUTE)
    assert cluster.service("scaled")["desiredCount"] == 2, "one message waits, and one is in progress"
    cluster.running("scaled", 2)
