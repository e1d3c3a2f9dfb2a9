"""What KEDA answers when the HorizontalPodAutoscaler asks for the value of a trigger."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inference_blueprints.serving.autoscaling.cron_schedule import CronWindow
from inference_blueprints.serving.autoscaling.scaled_object import (
    CronTrigger,
    Fallback,
    MetricTrigger,
    ScaledObject,
)


@dataclass(frozen=True, slots=True)
class ExternalMetric:
    """An answer.

    Parameters
    ----------
    value
        The number, with three decimals. None stands for an error.
    is_fallback
        Whether the fallback replaced a reading that failed.
    """

    value: float | None
    is_fallback: bool = False


def with_three_decimals(value: float) -> float:
    """Round as KEDA does. What is negative or no number becomes 0 (``pkg/scalers/scaler.go``)."""
    return round(value, 3) if math.isfinite(value) and value > 0 else 0.0


class ExternalMetrics:
    """KEDA's metrics of one ScaledObject, with the count of failed readings of each.

    Source: KEDA v2.20.2, ``GetScaledObjectMetrics`` and ``getScalerState`` of
    ``pkg/scaling/scale_handler.go``, ``pkg/fallback/fallback.go``, ``prometheus_scaler.go`` and
    ``cron_scaler.go`` of ``pkg/scalers``.
    """

    def __init__(self, scaled_object: ScaledObject) -> None:
        self._polling_seconds = scaled_object.polling_seconds
        self._fallback = scaled_object.fallback
        self._failures = dict.fromkeys((each.name for each in scaled_object.triggers), 0)
        self._windows = {
            each.name: CronWindow(each.start, each.end)
            for each in scaled_object.triggers
            if isinstance(each, CronTrigger)
        }
        self._first_poll: float | None = None
        self._polls = 0

    def poll(self, now_seconds: float) -> int:
        """Return how often KEDA has read the triggers itself since the last call.

        It reads every ``pollingInterval``, from the time at which it first saw the object, and counts a
        failure of these readings like one of a reading for the HorizontalPodAutoscaler.
        """
        if self._first_poll is None:
            self._first_poll = now_seconds
        polls = 1 + int((now_seconds - self._first_poll) / self._polling_seconds)
        new, self._polls = polls - self._polls, polls
        return new

    def answer_cron(self, trigger: CronTrigger, now_seconds: float) -> ExternalMetric:
        """Return the number of workers of a schedule, or 0 outside its time."""
        is_open = self._windows[trigger.name].is_open(now_seconds)
        return ExternalMetric(float(trigger.replicas) if is_open else 0.0)

    def answer(
        self, trigger: MetricTrigger, value: float | None, polls: int, current: int, ready: int
    ) -> ExternalMetric:
        """Return the reading of a trigger, the fallback for it, or an error.

        Parameters
        ----------
        trigger
            The trigger.
        value
            What Prometheus answers: not finite stands for an answer without a number, None for no answer.
        polls
            How often KEDA has read it since the last answer.
        current, ready
            Workers of the role, and those of them that are ready.
        """
        if value is not None and not math.isfinite(value):
            value = 0.0 if trigger.empty_is_zero else None
        if value is not None:
            self._failures[trigger.name] = 0
            return ExternalMetric(with_three_decimals(value))
        self._failures[trigger.name] += polls + 1
        if self._fallback is None or self._failures[trigger.name] <= self._fallback.failure_threshold:
            return ExternalMetric(None)
        return _fallback_metric(trigger, self._fallback, current, ready)


def _fallback_metric(trigger: MetricTrigger, fallback: Fallback, current: int, ready: int) -> ExternalMetric:
    """Return the value at which the HorizontalPodAutoscaler gets the fallback's number (``doFallback``)."""
    replicas = float(
        {
            "static": fallback.replicas,
            "currentReplicas": current,
            "currentReplicasIfHigher": max(current, fallback.replicas),
            "currentReplicasIfLower": min(current, fallback.replicas),
        }[fallback.behaviour]
    )
    if trigger.metric_type == "Value":
        if not ready:
            return ExternalMetric(None)
        replicas /= ready
    # Cut to thousandths, not rounded.
    return ExternalMetric(int(trigger.target * 1000 * replicas) / 1000, is_fallback=True)
