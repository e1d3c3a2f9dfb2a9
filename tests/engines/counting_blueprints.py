"""Blueprints for the counting model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint
from inference_local.serving.process_commands import FINISH_SECONDS


def counting(name: str, **model: Any) -> Blueprint:
    """Return a shipped blueprint whose answers are read as the engine writes them.

    name: The shipped blueprint.
    model: Other values of keys of its first model.
    """
    document = load_blueprint(name).blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0] |= {"parsers": {"reasoning": "none", "toolCall": "none"}} | model
    return Blueprint.model_validate(document)


def with_little_time(blueprint: Blueprint, seconds: int) -> Blueprint:
    """Return a blueprint whose workers serve on for so long after SIGTERM, instead of the plan's time."""
    document = blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0]["engine"] = {"vllm": {"env": {FINISH_SECONDS: str(seconds)}}}
    return Blueprint.model_validate(document)


def disaggregated(prefill: int, decode: int) -> Blueprint:
    """Return the quickstart with separate prefill and decode workers, with two of each at most."""
    blueprint = counting("quickstart-g6e")
    document = blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["pools"][0]["nodes"] = {"max": prefill + decode}
    roles: Mapping[str, Any] = {
        role: {"pool": "l40s", "replicas": replicas, "tensorParallelSize": 1}
        for role, replicas in (("prefill", prefill), ("decode", decode))
    }
    document["spec"]["models"][0]["deployments"] = [{"name": "main", "disaggregated": roles}]
    return Blueprint.model_validate(document)
