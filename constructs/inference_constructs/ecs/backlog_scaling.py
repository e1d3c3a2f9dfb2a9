"""Scales tasks by the backlog of their queue."""

from __future__ import annotations

import math
from itertools import pairwise

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecs as ecs

from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.batch.model_worker import WorkerCount

#: Maximum number of steps per policy (Application Auto Scaling, Service quotas). CDK splits the steps into
#: two policies.
_MOST_STEPS = 20
_COOLDOWN_MINUTES = 5


def scale_on_backlog(service: ecs.FargateService, queue: BatchShardQueue, count: WorkerCount) -> None:
    """Scale a service to the number of tasks that the messages of its queue need.

    Messages in progress count like waiting ones, because a worker that still has a shard is needed. The
    policy sets the exact number of tasks. It therefore also scales from zero, where a target per task is
    undefined.

    Parameters
    ----------
    service
        The tasks.
    queue
        Queue of the shards.
    count
        Minimum and maximum number of tasks, and shards per task.
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
    """Return the number of tasks for each range of messages.

    Parameters
    ----------
    count
        Minimum and maximum number of tasks, and shards per task. If a policy has too few steps for every
        number between them, a step starts several tasks.
    """
    width = math.ceil((count.most - count.least) / (_MOST_STEPS - 1))
    numbers = [*range(count.least, count.most, width), count.most]
    # Bounds are halfway between two numbers of messages, so that no number lies on a bound.
    borders = [0.0, *(number * count.shards + 0.5 for number in numbers[:-1]), None]
    return [
        autoscaling.ScalingInterval(change=number, lower=lower, upper=upper)
        for number, (lower, upper) in zip(numbers, pairwise(borders), strict=True)
    ]


def _backlog(queue: BatchShardQueue) -> cloudwatch.IMetric:
    period = cdk.Duration.minutes(1)
    return cloudwatch.MathExpression(
        expression="waiting + working",
        label="Messages waiting or in progress",
        period=period,
        using_metrics={
            "waiting": queue.metric_waiting_shards(period=period),
            "working": queue.metric_shards_in_progress(period=period),
        },
    )
