"""Tasks follow what their queue holds."""

from __future__ import annotations

import math
from itertools import pairwise

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_sqs as sqs

from inference_constructs.batch.model_worker import WorkerCount

#: A policy may have as many (Application Auto Scaling, Service quotas); CDK makes two policies of the steps.
_MOST_STEPS = 20
_COOLDOWN_MINUTES = 5


def scale_on_backlog(service: ecs.FargateService, queue: sqs.IQueue, count: WorkerCount) -> None:
    """Let the number of a service's tasks follow its queue: as many as its messages need.

    Messages in work count as those that wait do: a worker that still has a shard is needed. The number itself
    is set, not a change of it, so that it follows from nothing as well, where a target per task has no value.

    Parameters
    ----------
    service
        The tasks.
    queue
        What they work off.
    count
        How many there may be.
    """
    tasks = service.auto_scale_task_count(min_capacity=count.least, max_capacity=count.most)
    tasks.scale_on_metric(
        "Backlog",
        metric=_backlog(queue),
        scaling_steps=backlog_steps(count),
        adjustment_type=autoscaling.AdjustmentType.EXACT_CAPACITY,
        metric_aggregation_type=autoscaling.MetricAggregationType.MAXIMUM,
        evaluation_periods=1,
        cooldown=cdk.Duration.minutes(_COOLDOWN_MINUTES),
    )


def backlog_steps(count: WorkerCount) -> list[autoscaling.ScalingInterval]:
    """Return how many tasks there are for how many messages.

    Parameters
    ----------
    count
        How many there may be; of more than a policy has steps for, several start at once.
    """
    width = math.ceil((count.most - count.least) / (_MOST_STEPS - 1))
    numbers = [*range(count.least, count.most, width), count.most]
    # Halfway between two numbers of messages, so that none lies on a border.
    borders = [0.0, *(number * count.shards + 0.5 for number in numbers[:-1]), None]
    return [
        autoscaling.ScalingInterval(change=number, lower=lower, upper=upper)
        for number, (lower, upper) in zip(numbers, pairwise(borders), strict=True)
    ]


def _backlog(queue: sqs.IQueue) -> cloudwatch.IMetric:
    """Return the messages of a queue that wait or are in work."""
    period, most = cdk.Duration.minutes(1), cloudwatch.Stats.MAXIMUM
    return cloudwatch.MathExpression(
        expression="waiting + working",
        label="Messages that wait or are in work",
        period=period,
        using_metrics={
            "waiting": queue.metric_approximate_number_of_messages_visible(period=period, statistic=most),
            "working": queue.metric_approximate_number_of_messages_not_visible(period=period, statistic=most),
        },
    )
