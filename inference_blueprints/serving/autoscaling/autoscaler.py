"""The number of workers that KEDA and the HorizontalPodAutoscaler choose.

Source, where nothing else is named: Kubernetes v1.36.3, ``pkg/controller/podautoscaler/horizontal.go``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from inference_blueprints.serving.autoscaling.cron_schedule import CronWindow
from inference_blueprints.serving.autoscaling.scaled_object import (
    CronTrigger,
    Fallback,
    MetricTrigger,
    ScaledObject,
    ScalingPolicy,
    ScalingRules,
)
from inference_contracts.records import dataclass

# Stabilisation and policies of the HorizontalPodAutoscaler: how far and how fast a number may change.
#
# Source: Kubernetes v1.36.3, ``pkg/controller/podautoscaler/horizontal.go``, from
# ``normalizeDesiredReplicasWithBehaviors``.


class ScalingBehaviour:
    """The behaviour of one role, with what it remembers: recommendations, and changes in each direction."""

    def __init__(self, scaled_object: ScaledObject) -> None:
        self._object = scaled_object
        self._recommendations: list[tuple[float, int]] = []
        self._started = False
        #: Time and number of workers that came, and that went.
        self._came: list[tuple[float, int]] = []
        self._went: list[tuple[float, int]] = []

    def begin(self, now: float, current: int) -> None:
        """Remember the first number of workers as a recommendation (``recordInitialRecommendation``)."""
        if not self._started:
            self._recommendations.append((now, current))
            self._started = True

    def limited(self, now: float, current: int, proposed: int) -> tuple[int, str | None]:
        """Return how many workers the behaviour allows, and which limit applied."""
        stable = self._stabilised(now, current, proposed)
        desired = self._within_policies(now, current, stable)
        if desired != stable:
            limit = "range" if desired in (self._object.minimum, self._object.maximum) else "policy"
            return desired, f"{stable} wanted, limited by the {limit}"
        if stable != proposed:
            return desired, f"{proposed} wanted, held at {stable} by the stabilisation window"
        return desired, None

    def changed(self, now: float, before: int, after: int) -> None:
        """Remember a change (``storeScaleEvent``), and forget changes older than every period."""
        if after == before:
            return
        longest = max(
            each.period_seconds for rules in (self._object.up, self._object.down) for each in rules.policies
        )
        (self._came if after > before else self._went).append((now, abs(after - before)))
        for events in (self._came, self._went):
            events[:] = [event for event in events if event[0] >= now - longest]

    def _stabilised(self, now: float, current: int, proposed: int) -> int:
        """Keep to the limits of recent recommendations (``stabilizeRecommendationWithBehaviors``)."""
        up, down = (rules.stabilisation_seconds for rules in (self._object.up, self._object.down))
        minimum = min([proposed, *(number for time, number in self._recommendations if time > now - up)])
        maximum = max([proposed, *(number for time, number in self._recommendations if time > now - down)])
        self._recommendations = [
            *(each for each in self._recommendations if each[0] > now - max(up, down)),
            (now, proposed),
        ]
        return min(max(current, minimum), maximum)

    def _within_policies(self, now: float, current: int, wanted: int) -> int:
        """Return the number that range and policies allow (``convertDesiredReplicasWithBehaviorRate``)."""
        if wanted > current:
            limit = max(current, self._limit(now, current, self._object.up, 1))
            return min(wanted, self._object.maximum, limit)
        if wanted < current:
            limit = min(current, self._limit(now, current, self._object.down, -1))
            return max(wanted, self._object.minimum, limit)
        return wanted

    def _limit(self, now: float, current: int, rules: ScalingRules, direction: int) -> int:
        """Return the number that the policies allow at most, in a direction.

        Source: ``calculateScaleUpLimitWithScalingRules`` and ``calculateScaleDownLimitWithBehaviors``.
        """
        if rules.choice == "Disabled":
            return current
        limits = [self._policy_limit(now, current, each, direction) for each in rules.policies]
        # The policy with the largest change decides, unless the object says the smallest.
        return max(limits) if (rules.choice == "Max") == (direction > 0) else min(limits)

    def _policy_limit(self, now: float, current: int, policy: ScalingPolicy, direction: int) -> int:
        came, went = (
            sum(number for time, number in events if time > now - policy.period_seconds)
            for events in (self._came, self._went)
        )
        before = current - came + went
        if policy.unit == "Pods":
            return before + direction * policy.value
        share = before * (1 + direction * policy.value / 100)
        # Up is rounded up, so that one worker can become two. Down is cut, so that one can always go.
        return math.ceil(share) if direction > 0 else int(share)


@dataclass(frozen=True, slots=True)
class ExternalMetric:
    """An answer."""

    value: float | None
    """The number, with three decimals. None stands for an error."""
    is_fallback: bool = False
    """Whether the fallback replaced a reading that failed."""


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

        value: What Prometheus answers: not finite stands for an answer without a number, None for no answer.
        polls: How often KEDA has read it since the last answer.
        current, ready: Workers of the role, and those of them that are ready.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerReading:
    """What one trigger contributed to a decision."""

    value: float | None
    """What KEDA answered, or None for an error."""
    is_fallback: bool
    """Whether KEDA answered with the fallback."""
    proposed: int | None
    """Number of workers by this trigger alone, or None for an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision."""

    desired: int
    """Number of workers from now on."""
    reason: str
    """Why, in a few words."""
    per_trigger: Mapping[str, TriggerReading] = field(default_factory=dict)
    """What each trigger contributed, by name. Empty if no trigger was asked."""


class Autoscaler:
    """Decides like KEDA v2.20.2 with the HorizontalPodAutoscaler of Kubernetes v1.36.

    It remembers recommendations, changes and failures as they do, so one autoscaler belongs to one role, and
    decisions must come in the order of time. It expects that each decision is carried out.

    scaled_object: The rules.
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

        now_seconds: Seconds since 1970, or since any midnight in UTC if no trigger has a schedule.
        current_replicas: Workers that are wanted at the moment.
        ready_replicas: Those of them that are ready.
        values: Answer of Prometheus by name of the trigger. NaN or infinity stands for an answer without a
            number, and None or a missing name for no answer. Schedules need no entry.
        keda_answers: Whether KEDA's metrics adapter answers. If not, no trigger has a value and no failure is
            counted.
        Returns: The number of workers, and why.
        """
        self._behaviour.begin(now_seconds, current_replicas)
        polls = self._metrics.poll(now_seconds)
        # `reconcileAutoscaler`: outside of the range, no metric is asked.
        if not self._object.minimum <= current_replicas <= self._object.maximum:
            desired = max(self._object.minimum, min(self._object.maximum, current_replicas))
            self._behaviour.changed(now_seconds, current_replicas, desired)
            return Decision(
                desired=desired, reason=f"back in the range {self._object.minimum} to {self._object.maximum}"
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
        proposed, reason = _max_wanted(readings, current_replicas)
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


def _max_wanted(readings: Mapping[str, TriggerReading], current: int) -> tuple[int | None, str]:
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
