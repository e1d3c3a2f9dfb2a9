"""Fills the recordings with a plan: the rule file of the cluster's Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

import yaml

from inference_blueprints.monitoring.histogram_share import late_share
from inference_blueprints.monitoring.recordings import Recording, recordings
from inference_blueprints.serving.types import DeploymentPlan, Process, ServingPlan
from inference_blueprints.spec.types import Objectives

_INTERVAL = "15s"
_CONSTANT = "$constant"
_LATE = re.compile(r"^\$late\((\S+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrice:
    """The price of a node of a pool.

    Parameters
    ----------
    pool
        Name of the pool.
    instance_type
        EC2 instance type.
    purchase
        Karpenter's capacity type: ``on-demand``, ``spot`` or ``reserved``.
    usd_per_hour
        US dollars per hour.
    """

    pool: str
    instance_type: str
    purchase: str
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """A recording rule.

    Parameters
    ----------
    record
        Name of the series.
    expression
        PromQL.
    labels
        Labels that the rule adds.
    """

    record: str
    expression: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one rule is about: the labels that select its series, and what fills its placeholders."""

    labels: Mapping[str, str]
    programs: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    objectives: Objectives | None = None
    gpus: int = 0
    constants: Sequence[tuple[float, Mapping[str, str]]] = ()


def rules(
    platform: str,
    plan: ServingPlan,
    *,
    objectives: Mapping[str, Objectives],
    prices: Sequence[NodePrice] = (),
) -> tuple[RecordingRule, ...]:
    """Return every recording rule of a platform.

    Parameters
    ----------
    platform
        `metadata.name`.
    plan
        Its serving plan.
    objectives
        Objectives by the model's name in the blueprint. Without them, nothing is late.
    prices
        Prices of nodes. Nodes without a price have no cost.
    """
    found: list[RecordingRule] = []
    for recording in recordings():
        for scope in _scopes(recording, platform, plan, objectives, prices):
            found += _rules(recording, scope)
    return tuple(found)


def rule_groups(found: Sequence[RecordingRule]) -> dict[str, Any]:
    """Return recording rules as the content of a rule file, such as a chart's values hold it."""
    group = {
        "name": "inference-blueprints",
        "interval": _INTERVAL,
        "rules": [
            {
                "record": rule.record,
                "expr": rule.expression,
                **({"labels": dict(rule.labels)} if rule.labels else {}),
            }
            for rule in found
        ],
    }
    return {"groups": [group]}


def rule_file(found: Sequence[RecordingRule]) -> str:
    """Return recording rules as a file for Prometheus."""
    return yaml.safe_dump(rule_groups(found), sort_keys=False, width=10_000)


def _scopes(
    recording: Recording,
    platform: str,
    plan: ServingPlan,
    objectives: Mapping[str, Objectives],
    prices: Sequence[NodePrice],
) -> Iterator[_Scope]:
    if recording.scope == "platform":
        yield _Scope({"platform": platform})
        return
    if recording.scope == "pool":
        for pool in _pools(plan):
            labels = {"platform": platform, "pool": pool}
            yield _Scope(labels, constants=_price_constants(labels, prices))
        return
    for model in plan.models:
        for deployment in model.deployments:
            labels = {"platform": platform, "model": deployment.model, "release": deployment.release}
            programs = (deployment.stack, deployment.framework)
            if recording.scope == "release":
                yield _Scope(labels, programs, _measured_roles(deployment), objectives.get(model.name))
                continue
            for process in deployment.workers:
                yield _worker_scope(process, labels, programs, recording)


def _pools(plan: ServingPlan) -> list[str]:
    return sorted(
        {
            process.pool
            for model in plan.models
            for deployment in model.deployments
            for process in deployment.workers
            if process.pool
        }
    )


def _measured_roles(deployment: DeploymentPlan) -> tuple[str, ...]:
    """Return the roles whose engines see whole requests: decode, if prefill is separate."""
    roles = {process.role for process in deployment.workers}
    return ("decode",) if "decode" in roles else tuple(sorted(roles))


def _worker_scope(
    process: Process, labels: Mapping[str, str], programs: tuple[str, ...], recording: Recording
) -> _Scope:
    accelerators = process.resources.accelerators
    role = {**labels, "role": process.role, "pool": process.pool or ""}
    batch = process.engine.max_num_seqs if process.engine else 0
    constant = {"serving_workers_least": process.replicas, "serving_batch_size": batch}.get(recording.name)
    return _Scope(
        role,
        programs,
        gpus=accelerators.count * process.nodes if accelerators else 0,
        constants=[] if constant is None else [(constant, role)],
    )


def _price_constants(
    labels: Mapping[str, str], prices: Sequence[NodePrice]
) -> Sequence[tuple[float, Mapping[str, str]]]:
    return [
        (price.usd_per_hour, {**labels, "instance_type": price.instance_type, "purchase": price.purchase})
        for price in prices
        if price.pool == labels["pool"]
    ]


def _rules(recording: Recording, scope: _Scope) -> Iterator[RecordingRule]:
    template = next(
        (recording.promql[key] for key in (*scope.programs, "any") if key in recording.promql), None
    )
    if template is None:
        return
    if template == _CONSTANT:
        for value, labels in scope.constants:
            yield RecordingRule(recording.name, f"vector({value:g})", labels)
        return
    limit = getattr(scope.objectives, recording.objective, None) if recording.objective else None
    if recording.objective and limit is None:
        return
    selector = ",".join(f'{name}="{value}"' for name, value in scope.labels.items())
    if scope.roles and "vllm:" in template:
        selector += f',role=~"{"|".join(scope.roles)}"'
    by = ", ".join(scope.labels)
    for record, window, percentile in _variants(recording):
        if late := _LATE.match(template):
            expression = late_share(late[1], selector, by, window, limit_seconds=(limit or 0) / 1000)
        else:
            expression = Template(template).substitute(
                labels=selector, by=by, window=window, quantile=f"{percentile / 100:g}", gpus=scope.gpus
            )
        yield RecordingRule(record, expression, {})


def _variants(recording: Recording) -> Iterator[tuple[str, str, int]]:
    """Yield the name of each series with its window and percentile."""
    for place, name in enumerate(recording.series):
        window = recording.windows[place] if recording.windows else ""
        yield name, window, recording.percentiles[place] if recording.percentiles else 0
