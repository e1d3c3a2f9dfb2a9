"""What is asked of a platform's metrics: the expressions of rules, alarms, dashboards and triggers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.recording_rules import NodePrice, rules
from inference_blueprints.render.monitoring.recordings import Recording
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint, LatencyPercentiles, Objectives

MODEL = "qwen3-8b"
PRICE = NodePrice(pool="l40s", instance_type="g6e.2xlarge", purchase="on-demand", usd_per_hour=2.2)
#: Signals that may scale workers.
SIGNALS = ("tokensInFlight", "queueLength", "kvCacheUse", "timeToFirstToken")
#: Series of programs that no test starts, and what is recorded from them. `test_recorded_exporters` has their
#: recorded output.
_ELSEWHERE = (
    *("DCGM_FI_DEV", "keda_", "keda-", "pool_nodes", "pool_gpus", "model_usd_per_hour"),
    # Of the front door: tests/runtime/front_door/test_with_envoy.py.
    *("door_", 'role="door"'),
)
_OBJECTIVES = Objectives(
    time_to_first_token_p90_ms=2000,
    time_per_output_token_p90_ms=100,
    request_ms=LatencyPercentiles(p90=60_000),
)
_REPORTED = re.compile(r"\b(?:dynamo_\w+|vllm:\w+)")


def quickstart(**model: Any) -> Blueprint:
    """Return the quickstart with other values of keys of its model."""
    document = load_blueprint("quickstart-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["observability"] = {}
    document["spec"]["models"][0] |= model
    return Blueprint.model_validate(document)


def reported_here(recording: Recording) -> bool:
    """Return whether frontends and engines report what a recording needs."""
    return not any(name in text for text in recording.promql.values() for name in _ELSEWHERE)


def rule_expressions(stack: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the rules of a stack that need only frontends and engines, by the series that they record."""
    plan = build_plan(quickstart(stack=stack))
    found = rules("quickstart", plan, objectives={MODEL: _OBJECTIVES})
    return {
        rule.record: rule.expression
        for rule in found
        if not any(name in rule.expression for name in _ELSEWHERE)
    }


def trigger_expressions(signal: str, stack: Mapping[str, Any]) -> Sequence[str]:
    """Return what KEDA asks if a signal scales the workers."""
    load = {"load": {"metric": signal, "target": 0.5 if signal == "kvCacheUse" else 1000}}
    workers = {"pool": "l40s", "tensorParallelSize": 1, "replicas": {"min": 1, "max": 2}, "scaledBy": load}
    blueprint = quickstart(stack=stack, deployments=[{"name": "main", "aggregated": workers}])
    (model,) = build_plan(blueprint).models
    (worker,) = model.deployments[0].workers
    assert worker.scaling is not None
    return [trigger.query for trigger in worker.scaling.triggers]


def panel_queries(platform: str) -> Mapping[str, str]:
    """Return the query of every series of every dashboard, by its name."""
    selector = f'platform="{platform}"'
    return {
        name: query
        for row in dashboard_rows()
        for panel in row.panels
        for name, query in zip(panel.series, panel.queries(selector), strict=True)
    }


def alarm_queries(blueprint: Blueprint) -> Mapping[str, str]:
    """Return the query of every alarm, by its name."""
    alarms = platform_alarms(blueprint.metadata.name, build_plan(blueprint))
    return {alarm.name: alarm.query for alarm in alarms}


def reported_names(expressions: Iterable[str]) -> set[str]:
    """Return the names of the frontends' and engines' own metrics in expressions."""
    return {name for each in expressions for name in _REPORTED.findall(each)}
