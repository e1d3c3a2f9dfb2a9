"""Rules on serving stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.errors import Finding
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import listing, quote

#: Engines that a stack runs, where it does not run all.
STACK_ENGINES: Mapping[str, tuple[str, ...]] = MappingProxyType({"llmD": ("vllm",)})


def stack_runs_the_engine(spec: Spec) -> Iterator[Finding]:
    """Check that the stack of a model runs its engine."""
    for index, model in usable(spec.models):
        stack, engine = model.stack.chosen, model.engine.chosen
        engines = STACK_ENGINES.get(stack)
        if engines and engine not in engines:
            message = (
                f"got {quote(stack)} with the engine {quote(engine)}, it runs {listing(engines)}; change the "
                "engine, or set 'stack: {dynamo: {}}'"
            )
            yield Finding(("spec", "models", index, "stack"), message)


def stack_routes_like_that(spec: Spec) -> Iterator[Finding]:
    """Check that the stack of a model supports its routing."""
    for index, model in usable(spec.models):
        if model.stack.llm_d and model.routing.round_robin:
            message = (
                "got 'roundRobin', but the router of 'llmD' always uses prefix and load; remove it, or set "
                "'stack: {dynamo: {}}'"
            )
            yield Finding(("spec", "models", index, "routing"), message)
