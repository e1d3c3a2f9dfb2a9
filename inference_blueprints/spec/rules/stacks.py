"""Rules on what stands before the engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.errors import Finding
from inference_blueprints.spec.types import Model
from inference_blueprints.spec.wording import listing, quote

#: Engines that a stack runs, where it does not run all.
STACK_ENGINES: Mapping[str, tuple[str, ...]] = MappingProxyType({"llmD": ("vllm",)})


def stack_runs_the_engine(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that the model's engine is one of its stack's."""
    for index, model in models.items():
        stack, engine = model.stack.chosen, model.engine.chosen
        engines = STACK_ENGINES.get(stack)
        if engines and engine not in engines:
            message = (
                f"got {quote(stack)} with the engine {quote(engine)}, it runs {listing(engines)}; change the "
                "engine, or set 'stack: {dynamo: {}}'"
            )
            yield Finding(("spec", "models", index, "stack"), message)


def stack_routes_like_that(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that the model's stack has the routing that is asked for."""
    for index, model in models.items():
        if model.stack.llm_d and model.routing.round_robin:
            message = (
                "got 'roundRobin', but the router of 'llmD' goes by prefix and load; remove it, or set "
                "'stack: {dynamo: {}}'"
            )
            yield Finding(("spec", "models", index, "routing"), message)
