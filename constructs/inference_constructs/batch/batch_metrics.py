"""Batch metrics, with the names and dimensions that the functions and workers write."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from inference_contracts import batch_names


class BatchMetrics:
    """The metrics of one platform.

    Parameters
    ----------
    platform
        `metadata.name`.
    """

    def __init__(self, platform: str) -> None:
        self._platform = platform

    def metric_queue(self, name: str, queue: str) -> cloudwatch.Metric:
        """Return a metric of a queue's jobs: the maximum per five minutes.

        Parameters
        ----------
        name
            Name of the metric.
        queue
            Name of the queue.
        """
        return self._metric(name, "Maximum", {batch_names.QUEUE_DIMENSION: queue})

    def metric_workers(self, name: str, model: str, statistic: str = "Sum") -> cloudwatch.Metric:
        """Return a metric that each worker of a model publishes once per minute.

        Parameters
        ----------
        name
            Name of the metric.
        model
            Name of the model.
        statistic
            CloudWatch statistic over the workers, such as ``Sum``.
        """
        return self._metric(name, statistic, {batch_names.MODEL_DIMENSION: model})

    def metric_workers_per_second(self, name: str, model: str) -> cloudwatch.MathExpression:
        """Return a counter of a model's workers as a rate per second.

        Parameters
        ----------
        name
            Name of the metric.
        model
            Name of the model.
        """
        counted = f"{name.lower()}_{model.replace('-', '_')}"
        return cloudwatch.MathExpression(
            expression=f"{counted} / PERIOD({counted})",
            label=f"{model} {name}",
            period=cdk.Duration.minutes(5),
            using_metrics={counted: self.metric_workers(name, model)},
        )

    def metric_jobs_ended(self, state: str) -> cloudwatch.Metric:
        """Return the number of jobs that ended in a state.

        Parameters
        ----------
        state
            The state.
        """
        return self._metric(batch_names.JOBS_ENDED, "Sum", {batch_names.STATE_DIMENSION: state})

    def metric_model(self, name: str, model: str) -> cloudwatch.Metric:
        """Return a total over a model's jobs, counted when they end.

        Parameters
        ----------
        name
            Name of the metric.
        model
            Name of the model.
        """
        return self._metric(name, "Sum", {batch_names.MODEL_DIMENSION: model})

    def metric_team_cost(self, team: str) -> cloudwatch.Metric:
        """Return the cost of a team's jobs in US dollars, counted when they end.

        Parameters
        ----------
        team
            Name of the team.
        """
        return self._metric(batch_names.COST_USD, "Sum", {batch_names.TEAM_DIMENSION: team})

    def metric_platform(self, name: str) -> cloudwatch.Metric:
        """Return a counter of the whole platform.

        Parameters
        ----------
        name
            Name of the metric.
        """
        return self._metric(name, "Sum", {})

    def _metric(self, name: str, statistic: str, dimensions: Mapping[str, str]) -> cloudwatch.Metric:
        """Return a metric of this platform. CloudWatch labels a line by the dimensions that differ."""
        return cloudwatch.Metric(
            namespace=batch_names.METRIC_NAMESPACE,
            metric_name=name,
            dimensions_map={batch_names.PLATFORM_DIMENSION: self._platform, **dimensions},
            period=cdk.Duration.minutes(5),
            statistic=statistic,
        )
