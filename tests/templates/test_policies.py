"""Policies name what they grant: wildcards have reasons, and the reasons are still needed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.templates.checks.wildcards import ALLOWED, unexplained_wildcards, wildcards
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements
from tests.templates.test_front_door_stack import with_own_keys
from tests.templates.test_streaming_stack import streaming


def weights_in_s3(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"] = {"s3": "s3://acme-models/qwen3-8b/", "catalog": "Qwen/Qwen3-8B"}


def gated(spec: dict[str, Any]) -> None:
    arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
    spec["models"][0]["weights"]["tokenSecretArn"] = arn


def mirrored(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"] |= {"revision": "0a1b2c3d4e" * 4, "mirror": {}}


def compiled(spec: dict[str, Any]) -> None:
    spec["pools"][0]["instanceTypes"] = ["inf2.8xlarge"]
    model = spec["models"][0]
    model["weights"] = {"huggingFace": "meta-llama/Llama-3.1-8B-Instruct", "revision": "0a1b2c3d4e" * 4}
    gated(spec)
    model["engine"] = {"vllmNeuron": {"args": {"max-model-len": 4096}}}
    model["workload"] = {"inputTokens": 1000, "outputTokens": 200, "peakRequestsPerSecond": 0.1}


def destroyed(spec: dict[str, Any]) -> None:
    spec["environment"]["dataRemoval"] = "destroy"


def baked(spec: dict[str, Any]) -> None:
    spec["pools"][0]["imageAcceleration"] = {"ebsSnapshot": {}}


def sharing_kv_cache(spec: dict[str, Any]) -> None:
    destroyed(spec)
    spec["pools"][0]["instanceTypes"] = ["g6e.8xlarge"]
    spec["models"][0]["weights"]["revision"] = "v1"
    spec["models"][0]["kvCache"] = {"hostMemoryGib": 40, "shared": {"s3": {"expireDays": 5}}}


def with_batch(spec: dict[str, Any]) -> None:
    rates = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
    team = {"principals": ["arn:aws:iam::111122223333:role/A"], "monthlyBudgetUsd": 1}
    spec["teams"] = [{**team, "name": "ads", "dataPrefixes": ["s3://ads-data/"]}]
    spec["batch"] = {"queues": [{"name": "queue-0", "model": "qwen3-8b", "rates": rates}]}


def with_keys_of_programs(spec: dict[str, Any]) -> None:
    with_own_keys(spec)
    spec["observability"] = {"canary": {}}


def with_tasks(spec: dict[str, Any]) -> None:
    with_batch(spec)
    spec["batch"]["workers"] = {"ecs": {}}


def with_signals(spec: dict[str, Any]) -> None:
    with_batch(spec)
    spec["signalStore"] = {"valkey": {"maxGb": 1}, "signals": [{"name": "captions", "team": "ads"}]}


def observed(spec: dict[str, Any]) -> None:
    spec["observability"] = {"traces": {}, "canary": {}}


def operated(spec: dict[str, Any]) -> None:
    with_batch(spec)
    observed(spec)
    spec["observability"]["alarms"] = {"emails": ["people@example.com"]}
    spec["pools"][0] |= {"repairedBy": "gpuHealth", "purchase": {"reservation": {"tags": {"team": "ads"}}}}
    workers = spec["models"][0]["deployments"][0]["aggregated"]
    workers |= {"replicas": {"min": 1, "max": 2}, "scaledBy": {"load": {}}}
    health = {"action": "replace", "rebootsPerNodePerDay": 1}
    spec |= {"gpuHealth": health, "capacityShift": {"action": "shift"}}


def shifted_on_ecs(spec: dict[str, Any]) -> None:
    with_batch(spec)
    workers = spec["models"][0]["deployments"][0]["aggregated"]
    workers |= {"replicas": {"min": 1, "max": 2}, "scaledBy": {"load": {}}}
    spec["pools"][0] |= {"shared": {}, "nodes": {"min": 2, "max": 2}}
    spec["models"][0]["priority"] = 1
    spec |= {"cluster": {"ecs": {}}, "observability": {}, "capacityShift": {"action": "shift"}}


CHANGES = (
    None,
    weights_in_s3,
    gated,
    mirrored,
    compiled,
    destroyed,
    baked,
    sharing_kv_cache,
    with_batch,
    with_tasks,
    with_signals,
    observed,
    operated,
    streaming,
    with_own_keys,
    with_keys_of_programs,
)


#: Others have what is in them.
CONTAINED = (with_batch, observed)


@pytest.mark.parametrize(
    "change",
    [pytest.param(each, marks=pytest.mark.thorough if each in CONTAINED else ()) for each in CHANGES],
)
def test_every_wildcard_has_a_reason(synthesise: Synthesise, change: Any) -> None:
    assert unexplained_wildcards(synthesise(change)) == []


@pytest.mark.thorough
def test_every_reason_is_still_needed(synthesise: Synthesise) -> None:
    found = {each for change in (*CHANGES, shifted_on_ecs) for each in wildcards(synthesise(change))}
    unused = [
        (stack, pattern)
        for stack, pattern in ALLOWED
        if not any(where.startswith(stack) and re.fullmatch(pattern, grant) for where, grant in found)
    ]
    assert unused == []


def test_nothing_is_allowed_to_everybody(base_templates: Templates) -> None:
    for template in base_templates.by_stack.values():
        for resource in template["Resources"].values():
            for statement in statements(resource):
                principal = statement.get("Principal")
                assert statement["Effect"] == "Deny" or principal not in ("*", {"AWS": "*"}), statement


def test_unscoped_reads_are_bound_to_the_region(base_templates: Templates) -> None:
    described = [
        statement
        for template in base_templates.by_stack.values()
        for resource in template["Resources"].values()
        for statement in statements(resource)
        if any(":Describe" in action for action in listed(statement["Action"]))
        and statement["Resource"] == "*"
    ]
    assert len(described) == 2
    for statement in described:
        assert statement["Condition"] == {"StringEquals": {"aws:RequestedRegion": "us-west-2"}}
