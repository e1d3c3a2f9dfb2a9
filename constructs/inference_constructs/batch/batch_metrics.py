"""Metrics of batch as the functions and workers write them, by their own names and dimensions."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

#: `batch.embedded_metrics` of the runtime has the same word.
NAMESPACE: Final = "InferenceBlueprints/Batch"
#: States in which jobs end.
ENDS: Final = ("completed", "failed", "expired", "cancelled")
_PERIOD: Final = cdk.Duration.minutes(5)


class BatchMetrics:
    """The metrics of one platform.

    Parameters
    ----------
    platform
        `metadata.name`.
    """

    def __init__(self, platform: str) -> None:
        self._platform = platform

    def of_queue(self, name: str, queue: str) -> cloudwatch.Metric:
        """Return what the scheduler sees of a queue's jobs, the most in each five minutes.

        Parameters
        ----------
        name
            The metric.
        queue
            The queue's name.
        """
        return self._metric(name, "Maximum", Queue=queue)

    def of_workers(self, name: str, model: str, statistic: str = "Sum") -> cloudwatch.Metric:
        """Return what a model's workers say of themselves, each once a minute.

        Parameters
        ----------
        name
            The metric.
        model
            The model's name.
        statistic
            How the workers' figures become one.
        """
        return self._metric(name, statistic, Model=model)

    def a_second(self, name: str, model: str) -> cloudwatch.MathExpression:
        """Return what a model's workers count, as a rate.

        Parameters
        ----------
        name
            The metric.
        model
            The model's name.
        """
        counted = f"{name.lower()}_{model.replace('-', '_')}"
        return cloudwatch.MathExpression(
            expression=f"{counted} / PERIOD({counted})",
            label=f"{model} {name}",
            period=_PERIOD,
            using_metrics={counted: self.of_workers(name, model)},
        )

    def of_ended(self, state: str) -> cloudwatch.Metric:
        """Return how many jobs ended in a state.

        Parameters
        ----------
        state
            The state.
        """
        return self._metric("JobsEnded", "Sum", State=state)

    def of_model(self, name: str, model: str) -> cloudwatch.Metric:
        """Return what a model's jobs came to as they ended.

        Parameters
        ----------
        name
            The metric.
        model
            The model's name.
        """
        return self._metric(name, "Sum", Model=model)

    def cost_of_team(self, team: str) -> cloudwatch.Metric:
        """Return what a team's jobs cost as they ended, in dollars.

        Parameters
        ----------
        team
            The team's name.
        """
        return self._metric("CostUsd", "Sum", Team=team)

    def of_platform(self, name: str) -> cloudwatch.Metric:
        """Return what is counted for the platform as a whole.

        Parameters
        ----------
        name
            The metric.
        """
        return self._metric(name, "Sum")

    def _metric(self, name: str, statistic: str, **dimensions: str) -> cloudwatch.Metric:
        """Return a metric of this platform; a graph names its lines by what differs."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"Platform": self._platform, **dimensions},
            period=_PERIOD,
            statistic=statistic,
        )
