"""The number of workers that KEDA and the HorizontalPodAutoscaler choose.

Source, where nothing else is named: Kubernetes v1.36.3, ``pkg/controller/podautoscaler/horizontal.go``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_blueprints.serving.autoscaling.external_metrics import (
    ExternalMetric,
    ExternalMetrics,
    with_three_decimals,
)
from inference_blueprints.serving.autoscaling.scaled_object import (
    CronTrigger,
    MetricTrigger,
    ScaledObject,
)
from inference_blueprints.serving.autoscaling.scaling_behaviour import ScalingBehaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerReading:
    """What one trigger contributed to a decision.

    Parameters
    ----------
    value
        What KEDA answered, or None for an error.
    is_fallback
        Whether KEDA answered with the fallback.
    proposed
        Number of workers by this trigger alone, or None for an error.
    """

    value: float | None
    is_fallback: bool
    proposed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision.

    Parameters
    ----------
    desired
        Number of workers from now on.
    reason
        Why, in a few words.
    per_trigger
        What each trigger contributed, by name. Empty if no trigger was asked.
    """

    desired: int
    reason: str
    per_trigger: Mapping[str, TriggerReading] = field(default_factory=dict)


class Autoscaler:
    """Decides like KEDA v2.20.2 with the HorizontalPodAutoscaler of Kubernetes v1.36.

    It remembers recommendations, changes and failures as they do, so one autoscaler belongs to one role, and
    decisions must come in the order of time. It expects that each decision is carried out.

    Parameters
    ----------
    scaled_object
        The rules.
    """

    def __init__(self, scaled_object: ScaledObject) -> None:
        self._object = scaled_object
        self._metrics = ExternalMetrics(scaled_object)
        self._behaviour = ScalingBehaviour(scaled_object)

    def decide(
        self,
        now_seconds: float,
        current_replicas: int,
        ready_replicas: int,
        values: Mapping[str, float | None],
        *,
        keda_answers: bool = True,
    ) -> Decision:
        """Decide once, as the controller does every 15 seconds.

        Parameters
        ----------
        now_seconds
            Seconds since 1970, or since any midnight in UTC if no trigger has a schedule.
        current_replicas
            Workers that are wanted at the moment.
        ready_replicas
            Those of them that are ready.
        values
            Answer of Prometheus by name of the trigger. NaN or infinity stands for an answer without a
            number, and None or a missing name for no answer. Schedules need no entry.
        keda_answers
            Whether KEDA's metrics adapter answers. If not, no trigger has a value and no failure is counted.

        Returns
        -------
        Decision
            The number of workers, and why.
        """
        self._behaviour.begin(now_seconds, current_replicas)
        polls = self._metrics.poll(now_seconds)
        # `reconcileAutoscaler`: outside of the range, no metric is asked.
        if not self._object.least <= current_replicas <= self._object.most:
            desired = max(self._object.least, min(self._object.most, current_replicas))
            self._behaviour.changed(now_seconds, current_replicas, desired)
            return Decision(
                desired=desired, reason=f"back in the range {self._object.least} to {self._object.most}"
            )
        readings: dict[str, TriggerReading] = {}
        for trigger in self._object.triggers:
            metric = ExternalMetric(None)
            if keda_answers and isinstance(trigger, CronTrigger):
                metric = self._metrics.answer_cron(trigger, now_seconds)
            elif keda_answers and isinstance(trigger, MetricTrigger):
                value = values.get(trigger.name)
                metric = self._metrics.answer(trigger, value, polls, current_replicas, ready_replicas)
            readings[trigger.name] = TriggerReading(
                value=metric.value,
                is_fallback=metric.is_fallback,
                proposed=self._proposed(trigger, metric.value, current_replicas, ready_replicas),
            )
        proposed, reason = _most_wanted(readings, current_replicas)
        if proposed is None:
            return Decision(desired=current_replicas, reason=reason, per_trigger=readings)
        desired, limit = self._behaviour.limited(now_seconds, current_replicas, proposed)
        self._behaviour.changed(now_seconds, current_replicas, desired)
        return Decision(desired=desired, reason=limit or reason, per_trigger=readings)

    def _proposed(
        self, trigger: MetricTrigger | CronTrigger, value: float | None, current: int, ready: int
    ) -> int | None:
        """Return a trigger's number of workers.

        Source: ``GetExternalPerPodMetricReplicas`` and ``GetExternalMetricReplicas`` of
        ``replica_calculator.go``.
        """
        if value is None:
            return None
        # KEDA's cron scaler has a target of one per worker.
        target, per_worker = 1.0, True
        if isinstance(trigger, MetricTrigger):
            target, per_worker = with_three_decimals(trigger.target), trigger.metric_type == "AverageValue"
        # In thousandths, as the controller calculates: 1.1 / 0.1 is more than 11.
        usage, target_usage = round(value * 1000), round(target * 1000)
        if self._is_close(usage / (target_usage * (current if per_worker else 1))):
            return current
        return math.ceil(usage / target_usage * (1 if per_worker else ready))

    def _is_close(self, ratio: float) -> bool:
        return 1 - self._object.down.tolerance <= ratio <= 1 + self._object.up.tolerance


def _most_wanted(readings: Mapping[str, TriggerReading], current: int) -> tuple[int | None, str]:
    """Return the largest number that a trigger wants, and why; None if nothing may change.

    With a trigger that cannot be read, workers may come but not go (``computeReplicasForMetrics``).
    """
    wanted = {name: each.proposed for name, each in readings.items() if each.proposed is not None}
    missing = ", ".join(name for name in readings if name not in wanted)
    if not wanted:
        return None, f"no value of {missing}"
    name = max(wanted, key=lambda each: wanted[each])
    proposed = wanted[name]
    if missing and proposed < current:
        return None, f"no fewer workers without a value of {missing}"
    source = f"{name} (fallback)" if readings[name].is_fallback else name
    if proposed == current:
        return proposed, f"{source} is close to its target"
    return proposed, f"{source} wants {proposed}"
