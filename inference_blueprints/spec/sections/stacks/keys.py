"""Serving stacks, and how they distribute requests over workers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from inference_blueprints.spec.section import (
    Choice,
    ContainerImage,
    HuggingFaceRepository,
    ParserName,
    Revision,
    Section,
)

PrefixScorer = Literal["approximate", "precise"]
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


def with_stack_and_routing(model: Mapping[str, Any], stack_of_engine: Mapping[str, str]) -> dict[str, Any]:
    """Return a model of a file with the stack that its engine needs, and the routing of its stack.

    model: The model. What it names itself stays.
    stack_of_engine: Stack of each engine that does not run on Dynamo.
    """
    chosen = {**_follows(model, "engine", "stack", stack_of_engine), **model}
    return {**_follows(chosen, "stack", "routing", ROUTING_OF_STACK), **chosen}


def _follows(model: Mapping[str, Any], key: str, other: str, table: Mapping[str, str]) -> dict[str, Any]:
    """Return another key of a model that follows from one of its choices; empty if none does."""
    choice = model.get(key)
    if not isinstance(choice, dict) or len(choice) != 1:
        return {}
    [name] = choice
    return {other: {table[name]: {}}} if name in table else {}


class Frontend(Section):
    """Frontends, which answer the API, read and write tokens, and route requests. Only on Dynamo."""

    replicas: int | None = Field(default=None, ge=1, le=100)
    """Number of frontends per deployment. Without it, it follows from `workload`; at least two."""
    # The largest system nodes have 16 vCPUs and 64 GiB.
    cpu: int | None = Field(default=None, ge=1, le=14)
    """vCPUs that each frontend requests. Without it, they follow from `workload`."""
    memory_gib: int | None = Field(default=None, ge=2, le=48)
    """Memory of each frontend in GiB. Without it, it follows from `workload`."""
    image: ContainerImage | None = None
    """Image of the frontends, of the same release as the engine's. Without it, the published one."""
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    """Environment variables of the frontends, such as `DYN_LOG: debug`. Variables that the plan sets are
    errors, and so are secrets."""


#: Value of a key that switches a parser off.
NO_PARSER = "none"


class Parsers(Section):
    """Parsers of answers. Each key that is left out takes the model's parser in the catalogue."""

    reasoning: ParserName | None = None
    """Parser that separates reasoning from the answer, named as in the stack's release, or `none`."""
    tool_call: ParserName | None = None
    """Parser that turns text into tool calls, named as in the stack's release, or `none`."""


class NvmeKvCache(Section):
    """KV cache on the node's NVMe disks. It is written as it is computed and outlives the copy in memory."""

    gib: int | None = Field(default=None, ge=1, le=65_536)
    """NVMe space per worker, in GiB. Without it, all free space in the worker's share of the node's NVMe."""


class S3KvCache(Section):
    """KV cache in a bucket that the platform creates for the model and deletes with it."""

    expire_days: int = Field(default=3, ge=1, le=90)
    """Days after which S3 deletes an entry."""


class SharedKvCache(Choice):
    """KV cache that all workers of the model share."""

    s3: S3KvCache | None = None
    """An S3 bucket."""


class KvCache(Section):
    """KV cache that is kept after it leaves the accelerators. Sizes are per worker."""

    host_memory_gib: int = Field(ge=1, le=24_576)
    """Node memory for the KV cache of each worker that computes prompts, in GiB."""
    nvme: NvmeKvCache | None = None
    """KV cache on the node's NVMe, behind the memory. Without it, NVMe is not used."""
    shared: SharedKvCache | None = None
    """Store that all workers of the model share, behind the node's tiers. Without it, nothing is shared."""


class GuessedTokens(Section):
    """Number of guesses."""

    tokens: int = Field(default=3, ge=1, le=16)
    """Tokens that are guessed per step."""


class EagleDraft(GuessedTokens):
    """A small model that was trained to guess for this one."""

    hugging_face: HuggingFaceRepository
    """Repository of the draft on the Hugging Face Hub: a draft of the catalogue, or one that
    `blueprints models add` described. Each worker downloads it from there."""
    revision: Revision | None = None
    """Commit, branch or tag of the draft. With a commit, the draft never changes."""


class Speculation(Choice):
    """Speculative decoding. Its gain depends on the answers and is not predicted."""

    mtp: GuessedTokens | None = None
    """The model's own layers for multi-token prediction guess. For models that have them. vLLM and SGLang."""
    n_gram: GuessedTokens | None = None
    """Repetitions of text in the prompt are the guesses. It takes no device memory. vLLM."""
    eagle: EagleDraft | None = None
    """A draft model guesses: EAGLE or EAGLE-3, as its own configuration says. vLLM and SGLang."""

    @property
    def tokens(self) -> int:
        """Tokens that are guessed per step."""
        [guesses] = [each for each in (self.mtp, self.n_gram, self.eagle) if each is not None]
        return guesses.tokens
