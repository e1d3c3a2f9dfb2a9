"""Serving stacks, and how they distribute requests over workers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from inference_blueprints.spec.types.section import Choice, Section

PrefixScorer = Literal["approximate", "precise"]
#: Stack of each engine that does not run on Dynamo, if the file names none.
STACK_OF_ENGINE: Final[Mapping[str, str]] = MappingProxyType(
    {"vllmNeuron": "direct", "llamaCpp": "direct", "vllmOmni": "direct"}
)
#: Routing of each stack that does not route KV-aware, if the file names none.
ROUTING_OF_STACK: Final[Mapping[str, str]] = MappingProxyType({"direct": "leastRequests"})


class DynamoStack(Section):
    """NVIDIA Dynamo's frontend, router and operator."""


class LlmDStack(Section):
    """llm-d's router in front of standard vLLM servers."""

    prefix_scorer: PrefixScorer = "approximate"
    """Source of the router's data about the workers' caches: `approximate` uses the requests that it sent,
    `precise` uses events of the workers."""


class DirectStack(Section):
    """No router. The load balancer sends each request to the worker with the fewest open requests."""


class Stack(Choice):
    """Serving stack in front of the engines."""

    dynamo: DynamoStack | None = None
    """NVIDIA Dynamo."""
    llm_d: LlmDStack | None = None
    """llm-d. It runs vLLM only and routes KV-aware."""
    direct: DirectStack | None = None
    """No router: the load balancer sends requests straight to the engines' own servers."""


class KvAwareRouting(Section):
    """Send a request to the worker with the best combination of cached prefix and load."""

    overlap_credit: float | None = Field(default=None, ge=0.0, le=100.0)
    """Weight of a cached prefix against load: 0 ignores caches. Without it, 1. Not on llm-d."""
    temperature: float | None = Field(default=None, ge=0.0, le=100.0)
    """Randomness of the choice among workers. Without it, 0: always the best worker. Not on llm-d."""
    busy_cache_fraction: float | None = Field(default=None, gt=0.0, le=1.0)
    """Used fraction of a worker's KV cache above which it is busy. Requests are refused while every worker is
    busy. Without it, requests wait. Not on llm-d."""
    busy_prefill_tokens: int | None = Field(default=None, ge=1, le=100_000_000)
    """Prompt tokens in progress above which a worker is busy, as with `busyCacheFraction`. Not on llm-d."""
    session_affinity_seconds: int | None = Field(default=None, ge=1, le=86_400)
    """Time since its last request in which a session stays with its worker. Clients name the session in the
    header `X-Dynamo-Session-ID`. Without it, sessions have no effect. Not on llm-d."""

    @property
    def given(self) -> tuple[str, ...]:
        """Keys that are set, as in the YAML file."""
        return tuple(to_camel(name) for name in type(self).model_fields if getattr(self, name) is not None)


class RoundRobinRouting(Section):
    """Send requests to the workers in turn."""


class LeastRequestsRouting(Section):
    """Send a request to the worker with the fewest open requests."""


class Routing(Choice):
    """Distribution of requests over the workers of a deployment."""

    kv_aware: KvAwareRouting | None = None
    """Distribute by KV cache and load."""
    round_robin: RoundRobinRouting | None = None
    """Distribute in turn."""
    least_requests: LeastRequestsRouting | None = None
    """Distribute by open requests. Only on `direct`, where the load balancer does it."""


def with_stack_and_routing(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model of a file with the stack that its engine needs, and the routing of its stack.

    Parameters
    ----------
    model
        The model. What it names itself stays.
    """
    chosen = {**_follows(model, "engine", "stack", STACK_OF_ENGINE), **model}
    return {**_follows(chosen, "stack", "routing", ROUTING_OF_STACK), **chosen}


def _follows(model: Mapping[str, Any], key: str, other: str, table: Mapping[str, str]) -> dict[str, Any]:
    """Return another key of a model that follows from one of its choices; empty if none does."""
    choice = model.get(key)
    if not isinstance(choice, dict) or len(choice) != 1:
        return {}
    [name] = choice
    return {other: {table[name]: {}}} if name in table else {}
