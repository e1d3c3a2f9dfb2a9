"""Publishes the loads of elastic roles, so that target tracking makes the decisions that KEDA makes on EKS.

Target tracking changes the capacity in proportion: ``new = present x metric / target``, where the present
capacity of a service is its desired count. So the metric has to fall as the capacity grows (Application Auto
Scaling User Guide, "Target tracking scaling policies").

- ``AverageValue`` (KEDA: ``ceil(load / target)``). The load divided by the *desired* count is published, so
  that ``desired x (load / desired) / target`` is the same number. Divided by the tasks that run, it would
  stay high while new workers load their model, and each evaluation would add workers again.
- ``Value`` (the HorizontalPodAutoscaler: ``ready x value / target``). The value is published with the factor
  ``ready / desired``, for the same reason.

Nothing is published for a trigger without an answer: with missing data target tracking keeps the capacity
(same page, "If the metric is missing data points").
https://docs.aws.amazon.com/autoscaling/application/userguide/application-auto-scaling-target-tracking.html
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from inference_contracts import scale_metrics as names
from inference_contracts.scale_metrics import PublishedRole, PublishedTrigger
from task_targets.prometheus_query import PrometheusError

Query = Callable[[str], float]


@dataclass(frozen=True, slots=True)
class Loads:
    """What a round measured."""

    values: tuple[tuple[Mapping[str, str], float], ...]
    """Published value of each trigger, by its dimensions."""
    unread: tuple[str, ...]
    """Triggers without a value, with the reason."""


def measure(
    platform: str, roles: Sequence[PublishedRole], wanted: Mapping[tuple[str, str], int], query: Query
) -> Loads:
    """Return the loads of the roles.

    roles: Its elastic roles.
    wanted: Desired counts of services, by release and role.
    query: Returns the one number of a PromQL expression, or raises `PrometheusError`.
    """
    values: list[tuple[Mapping[str, str], float]] = []
    unread: list[str] = []
    for role in roles:
        desired = wanted.get((role.release, role.role), 0)
        if not desired:
            unread.append(f"{role.release} {role.role}: no service wants tasks")
            continue
        for trigger in role.triggers:
            try:
                value = query(trigger.query) * _factor(role, trigger, desired, query)
            except PrometheusError as error:
                unread.append(f"{role.release} {role.role} {trigger.name}: {error}")
            else:
                values.append((names.load_dimensions(platform, role, trigger), value))
    return Loads(tuple(values), tuple(unread))


def _factor(role: PublishedRole, trigger: PublishedTrigger, desired: int, query: Query) -> float:
    if trigger.metric_type == "AverageValue":
        return 1.0 / desired
    ready = query(f"sum(up{{release={json.dumps(role.release)},role={json.dumps(role.role)}}})")
    return min(1.0, ready / desired)


#: Metrics of an embedded line: at most 100 per directive, and a line has one value per dimension, so each
#: trigger has a line of its own. https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/
#: CloudWatch_Embedded_Metric_Format_Specification.html
_COUNT: Final = "Count"


def embedded_lines(platform: str, loads: Loads, unaddressed: int, now: float) -> Iterator[str]:
    """Yield the lines in CloudWatch's embedded metric format.

    unaddressed: Tasks without an address of metrics.
    now: Seconds since the epoch.
    """
    for dimensions, value in loads.values:
        yield _line(dimensions, {names.LOAD: (value, "None")}, now)
    counts = {names.UNREAD: (float(len(loads.unread)), _COUNT), names.UNTAGGED: (float(unaddressed), _COUNT)}
    yield _line(dict.fromkeys(names.UNREAD_DIMENSIONS, platform), counts, now)


def _line(dimensions: Mapping[str, str], figures: Mapping[str, tuple[float, str]], now: float) -> str:
    if not all(math.isfinite(value) for value, _ in figures.values()):
        raise ValueError("CloudWatch takes finite values only")
    directive: dict[str, Any] = {
        "Namespace": names.METRIC_NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": name, "Unit": unit} for name, (_, unit) in figures.items()],
    }
    described = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]}
    return json.dumps(
        {"_aws": described, **dimensions, **{name: value for name, (value, _) in figures.items()}}
    )
