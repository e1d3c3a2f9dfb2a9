"""Stabilisation and policies of the HorizontalPodAutoscaler: how far and how fast a number may change.

Source: Kubernetes v1.36.3, ``pkg/controller/podautoscaler/horizontal.go``, from
``normalizeDesiredReplicasWithBehaviors``.
"""

from __future__ import annotations

import math

from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject, ScalingPolicy, ScalingRules


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
