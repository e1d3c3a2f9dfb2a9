"""Rules on serving stacks."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Spec


def stack_routes_like_that(spec: Spec) -> Iterator[Finding]:
    """Check that the stack of a model supports its routing."""
    for index, model in usable(spec.models):
        if model.stack.llm_d and model.routing.round_robin:
            message = (
                "got 'roundRobin', but the router of 'llmD' always uses prefix and load; remove it, or set "
                "'stack: {dynamo: {}}'"
            )
            yield Finding(("spec", "models", index, "routing"), message)


def settings_are_of_dynamo_s_router(spec: Spec) -> Iterator[Finding]:
    """Check that settings of Dynamo's router are not given to the router of llm-d."""
    for index, model in usable(spec.models):
        if model.stack.llm_d and model.routing.kv_aware:
            for key in model.routing.kv_aware.given:
                message = "the router of 'llmD' has no such setting; remove it, or set 'stack: {dynamo: {}}'"
                yield Finding(("spec", "models", index, "routing", "kvAware", key), message)


def frontends_are_dynamo_s(spec: Spec) -> Iterator[Finding]:
    """Check that settings of Dynamo's frontends are not given to llm-d."""
    for index, model in usable(spec.models):
        if model.stack.llm_d and model.frontend:
            message = (
                "'llmD' has a router instead of frontends, and its size is fixed; remove it, or set "
                "'stack: {dynamo: {}}'"
            )
            yield Finding(("spec", "models", index, "frontend"), message)
