"""Rules on serving stacks."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import STACK_OF_ENGINE, Model, Spec
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding

_DYNAMO = "set 'stack: {dynamo: {}}'"


def _or_dynamo(model: Model) -> str:
    """Return the other remedy of a model on ``direct``; nothing if its engine runs on no other stack."""
    return "" if model.engine.chosen in STACK_OF_ENGINE else f", or {_DYNAMO}"


@rule
def stack_routes_like_that(spec: Spec) -> Iterator[Finding]:
    """Check that the stack of a model supports its routing."""
    for index, model in usable(spec.models):
        if reason := _wrong_routing(model):
            message = f"got {quote(model.routing.chosen)}, but {reason}"
            yield Finding(("spec", "models", index, "routing"), message)


def _wrong_routing(model: Model) -> str | None:
    """Return why a stack does not route like that, and what to do; None if it does."""
    stack, routing = model.stack, model.routing
    if stack.llm_d and not routing.kv_aware:
        return f"the router of 'llmD' always uses prefix and load; remove it, or {_DYNAMO}"
    if stack.direct and not routing.least_requests:
        return (
            "'direct' has no router: the load balancer sends each request to the worker with the fewest open "
            f"requests; remove it{_or_dynamo(model)}"
        )
    if stack.dynamo and routing.least_requests:
        return "only the stack 'direct' routes like that; remove it, or set 'stack: {direct: {}}'"
    return None


@rule
def settings_are_of_dynamo_s_router(spec: Spec) -> Iterator[Finding]:
    """Check that settings of Dynamo's router are not given to the router of llm-d."""
    for index, model in usable(spec.models):
        if model.stack.llm_d and model.routing.kv_aware:
            for key in model.routing.kv_aware.given:
                message = f"the router of 'llmD' has no such setting; remove it, or {_DYNAMO}"
                yield Finding(("spec", "models", index, "routing", "kvAware", key), message)


@rule
def frontends_are_dynamo_s(spec: Spec) -> Iterator[Finding]:
    """Check that settings of Dynamo's frontends are not given to another stack."""
    for index, model in usable(spec.models):
        if model.frontend is None or model.stack.dynamo:
            continue
        instead = (
            "a router instead of frontends, and its size is fixed" if model.stack.llm_d else "no frontends"
        )
        other = _or_dynamo(model) if model.stack.direct else f", or {_DYNAMO}"
        message = f"{quote(model.stack.chosen)} has {instead}; remove it{other}"
        yield Finding(("spec", "models", index, "frontend"), message)


@rule
def model_survives_the_loss_of_a_system_node(spec: Spec) -> Iterator[Finding]:
    """Warn if all requests of several workers pass through one process, which a lost node takes away.

    llm-d's approximate scorer has one router, and Envoy refuses requests while its picker is down
    (``failure_mode_allow: false``; llm-d/llm-d-router#1593, #2051).
    """
    for index, model in usable(spec.models):
        workers = [each.minimum for _, item in usable(model.deployments) for each in item.workers.values()]
        path = ("spec", "models", index)
        if sum(workers) <= 1:
            continue
        if model.stack.llm_d and model.stack.llm_d.prefix_scorer == "approximate":
            precise = "set 'prefixScorer: precise', which has two, or " if model.task == "generate" else ""
            message = (
                "the approximate scorer has one router, which refuses requests while it is down: if its "
                f"system node is lost, no worker gets requests until it runs on another; {precise}{_DYNAMO}"
            )
            yield Finding((*path, "stack", "llmD"), message, "warning")
        elif model.stack.dynamo and model.frontend and model.frontend.replicas == 1:
            message = (
                "got 1, so no worker gets requests while this frontend is down or its system node is lost; "
                "set 2 or more, or leave it out"
            )
            yield Finding((*path, "frontend", "replicas"), message, "warning")


@rule
def direct_workers_are_whole(spec: Spec) -> Iterator[Finding]:
    """Check that workers without a router compute whole requests, and share no KV cache."""
    for index, model in usable(spec.models):
        if model.stack.direct is None:
            continue
        path = ("spec", "models", index)
        for place, deployment in usable(model.deployments):
            if deployment.disaggregated:
                message = (
                    "got 'disaggregated', but 'direct' has no router that names a prefill worker; make it "
                    f"'aggregated'{_or_dynamo(model)}"
                )
                yield Finding((*path, "deployments", place, "disaggregated"), message)
        if model.kv_cache:
            message = (
                "'direct' has no router that sends a session to the worker with its cache; remove "
                f"it{_or_dynamo(model)}"
            )
            yield Finding((*path, "kvCache"), message)
