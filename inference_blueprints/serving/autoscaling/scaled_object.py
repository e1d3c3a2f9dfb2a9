"""KEDA's ScaledObject as types, read from a rendered manifest.

Source: KEDA v2.20.2, ``apis/keda/v1alpha1/scaledobject_types.go`` and the scalers' metadata; defaults of the
behaviour: Kubernetes v1.36, ``pkg/apis/autoscaling/v2/defaults.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast, get_args

from inference_blueprints.serving.autoscaling.cron_schedule import CronError, CronSchedule
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

MetricTarget = Literal["AverageValue", "Value"]
PolicyUnit = Literal["Pods", "Percent"]
PolicyChoice = Literal["Max", "Min", "Disabled"]
FallbackBehaviour = Literal["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]

#: Unless the object says otherwise (``defaultPollingInterval``, ``defaultHPAMaxReplicas``).
_POLLING_SECONDS, _MAXIMUM = 30, 100
#: Of kube-controller-manager, ``--horizontal-pod-autoscaler-tolerance`` and ``-downscale-stabilization``.
_TOLERANCE, _DOWN_STABILISATION_SECONDS = 0.1, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTrigger:
    """A trigger of the type ``prometheus``."""

    name: str
    """Name of the trigger, or the name that KEDA gives its metric: ``s0-prometheus``."""
    query: str
    """PromQL expression."""
    target: float
    """``threshold``, in the unit of the query."""
    metric_type: MetricTarget
    """Whether the value is divided by the number of workers before it is compared with the target."""
    empty_is_zero: bool
    """``ignoreNullValues``, which is true unless the object says otherwise: an answer without a number counts
    as 0, and workers go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronTrigger:
    """A trigger of the type ``cron``: a number of workers from `start` to `end`."""

    name: str
    start: CronSchedule
    end: CronSchedule
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """How many workers may come or go within a period."""

    unit: PolicyUnit
    value: int
    period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRules:
    """The behaviour in one direction."""

    stabilisation_seconds: int
    policies: tuple[ScalingPolicy, ...]
    choice: PolicyChoice = "Max"
    tolerance: float = _TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """What holds while a trigger cannot be read."""

    failure_threshold: int
    replicas: int
    behaviour: FallbackBehaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledObject:
    """What KEDA and the HorizontalPodAutoscaler know of an elastic role."""

    name: str
    minimum: int
    maximum: int
    """`minimum`, `maximum`: Smallest and largest number of workers."""
    polling_seconds: int
    """Time between two readings by KEDA itself. The HorizontalPodAutoscaler reads besides."""
    triggers: tuple[MetricTrigger | CronTrigger, ...]
    """What is measured, in the order of the object."""
    up: ScalingRules
    down: ScalingRules
    """`up`, `down`: Behaviour when workers come and go."""
    fallback: Fallback | None
    """What holds without readings. None means that the number stays."""

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> ScaledObject:
        """Read a manifest.

        manifest: A ``ScaledObject`` of ``keda.sh/v1alpha1``, as a chart renders it.
        Raises UserError if it has something that this library does not evaluate, with all reasons.
        """
        name = str(manifest.get("metadata", {}).get("name", "?"))
        spec = manifest.get("spec", {})
        problems: list[str] = []
        triggers = _triggers(spec.get("triggers", ()), problems)
        advanced = spec.get("advanced", {})
        behaviour = advanced.get("horizontalPodAutoscalerConfig", {}).get("behavior")
        if behaviour is None:
            # Without it the controller decides by other, older rules (`normalizeDesiredReplicas`).
            problems.append(
                "spec.advanced.horizontalPodAutoscalerConfig.behavior is missing; write scaleDown"
            )
        problems += [
            f"spec.{key} is not evaluated; leave it out" for key in ("idleReplicaCount",) if key in spec
        ]
        if "scalingModifiers" in advanced:
            problems.append("spec.advanced.scalingModifiers is not evaluated; leave it out")
        minimum, maximum = spec.get("minReplicaCount", 0), spec.get("maxReplicaCount", _MAXIMUM)
        if not 1 <= minimum <= maximum:
            problems.append(f"spec.minReplicaCount is {minimum}; allowed is 1 to maxReplicaCount ({maximum})")
        if problems:
            raise UserError("\n".join(f"ScaledObject {name}: {problem}" for problem in problems))
        return cls(
            name=name,
            minimum=minimum,
            maximum=maximum,
            polling_seconds=spec.get("pollingInterval", _POLLING_SECONDS),
            triggers=triggers,
            up=_rules((behaviour or {}).get("scaleUp"), _UP),
            down=_rules((behaviour or {}).get("scaleDown"), _DOWN),
            fallback=_fallback(spec.get("fallback")),
        )

    def with_limits(self, maximum: int, targets: Mapping[str, float]) -> ScaledObject:
        """Return it with at most so many workers, and with other targets of some triggers.

        targets: By name of the trigger.
        """
        triggers = tuple(
            replace(each, target=targets[each.name])
            if isinstance(each, MetricTrigger) and each.name in targets
            else each
            for each in self.triggers
        )
        return replace(self, maximum=min(self.maximum, maximum), triggers=triggers)


#: Of ``defaults.go``.
_UP = ScalingRules(
    stabilisation_seconds=0,
    policies=(
        ScalingPolicy(unit="Pods", value=4, period_seconds=15),
        ScalingPolicy(unit="Percent", value=100, period_seconds=15),
    ),
)
_DOWN = ScalingRules(
    stabilisation_seconds=_DOWN_STABILISATION_SECONDS,
    policies=(ScalingPolicy(unit="Percent", value=100, period_seconds=15),),
)


def _triggers(
    entries: Sequence[Mapping[str, Any]], problems: list[str]
) -> tuple[MetricTrigger | CronTrigger, ...]:
    found: list[MetricTrigger | CronTrigger] = []
    for index, entry in enumerate(entries):
        kind, metadata = entry.get("type"), entry.get("metadata", {})
        try:
            if kind == "prometheus":
                found.append(_metric_trigger(entry, metadata, f"s{index}-prometheus"))
            elif kind == "cron":
                found.append(_cron_trigger(entry, metadata, f"s{index}-cron"))
            else:
                problems.append(f"spec.triggers[{index}].type is {kind!r}; allowed are prometheus and cron")
        except KeyError as missing:
            problems.append(f"spec.triggers[{index}].metadata has no {missing.args[0]}")
        except ValueError as error:
            problems.append(f"spec.triggers[{index}].metadata: {error}")
    if not entries:
        problems.append("spec.triggers is empty; write at least one trigger")
    return tuple(found)


def _metric_trigger(entry: Mapping[str, Any], metadata: Mapping[str, str], name: str) -> MetricTrigger:
    metric_type = entry.get("metricType", "AverageValue")
    if metric_type not in get_args(MetricTarget):
        raise ValueError(f"metricType is {metric_type!r}; allowed are {', '.join(get_args(MetricTarget))}")
    target = float(metadata["threshold"])
    if target <= 0:
        raise ValueError(f"threshold is {target:g}; it must be above 0")
    return MetricTrigger(
        name=entry.get("name", name),
        query=metadata["query"],
        target=target,
        metric_type=cast(MetricTarget, metric_type),
        empty_is_zero=str(metadata.get("ignoreNullValues", "true")).lower() == "true",
    )


def _cron_trigger(entry: Mapping[str, Any], metadata: Mapping[str, str], name: str) -> CronTrigger:
    start, end, zone = metadata["start"], metadata["end"], metadata["timezone"]
    if start == end:
        raise CronError(f"start and end are both {start!r}")
    return CronTrigger(
        name=entry.get("name", name),
        start=CronSchedule.read(start, zone),
        end=CronSchedule.read(end, zone),
        replicas=int(metadata["desiredReplicas"]),
    )


def _rules(entry: Mapping[str, Any] | None, default: ScalingRules) -> ScalingRules:
    if entry is None:
        return default
    policies = tuple(
        ScalingPolicy(unit=each["type"], value=each["value"], period_seconds=each["periodSeconds"])
        for each in entry.get("policies", ())
    )
    return ScalingRules(
        stabilisation_seconds=entry.get("stabilizationWindowSeconds", default.stabilisation_seconds),
        policies=policies or default.policies,
        choice=entry.get("selectPolicy", default.choice),
        tolerance=float(entry.get("tolerance", default.tolerance)),
    )


def _fallback(entry: Mapping[str, Any] | None) -> Fallback | None:
    if entry is None:
        return None
    return Fallback(
        failure_threshold=entry["failureThreshold"],
        replicas=entry["replicas"],
        behaviour=entry.get("behavior", "static"),
    )
