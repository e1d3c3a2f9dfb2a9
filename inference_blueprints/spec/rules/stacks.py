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
