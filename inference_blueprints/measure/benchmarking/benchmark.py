"""Measures an endpoint and compares the result with an offline replay of the same requests."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.measure.benchmarking.load_generators import Access, LoadGenerator
from inference_blueprints.measure.completions.completion_client import CompletionClient, RequestOutcome
from inference_blueprints.measure.completions.served_models import ListingFailedError, served_models
from inference_blueprints.measure.replay.prompt_writer import block_seed
from inference_blueprints.measure.replay.scaled_trace import COMMON_PREFIX, PrefixBlock, ScaledRequest
from inference_blueprints.measure.simulation.offline_replay import (
    MissingProfileError,
    RecordedRequest,
    SimulatedReplay,
)
from inference_blueprints.measure.simulation.simulated_workers import simulated_workers
from inference_blueprints.measure.statistics import (
    Basis,
    Measurement,
    ServingCapacity,
    capacity_of,
    measure,
    percentile_of,
)
from inference_blueprints.measure.tokenizer import one_token_words, random_text
from inference_blueprints.measure.tuning.replayed_workload import (
    Demand,
    StatedWorkload,
    busiest,
    objectives_of,
    recorded_workload,
    router_of,
)
from inference_blueprints.measure.tuning.traces import BLOCK_TOKENS, read_trace
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.types import Blueprint, JudgedObjective, Workload, judge
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

# The requests of a benchmark: their arrival times, and prompts of the wanted lengths.


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a benchmark."""

    seconds: float
    """Maximum duration of the arrivals."""
    requests: int
    context_length: int
    """Maximum tokens of a prompt and its answer together; longer requests are left out."""


@dataclass(frozen=True, slots=True)
class Questions:
    """The requests of a benchmark."""

    demand: Demand
    """The same requests in the form that the offline replay needs."""
    requests: tuple[ScaledRequest, ...]
    """The requests in order of arrival, with prompts as blocks of tokens."""
    trace: str
    """Name of the trace; empty for the `workload` section."""
    notes: tuple[str, ...]
    """What was left out."""


def generate_requests(workload: Workload, bounds: Bounds) -> Questions:
    """Return requests of the workload's mean lengths at random times, at its peak rate.

    bounds: Limits of the benchmark.
    Raises UserError if no request arrives within the bounds.
    """
    chance = random.Random(0)  # noqa: S311 - no secret is made
    shared = round(workload.input_tokens * workload.shared_prefix_ratio)
    requests: list[ScaledRequest] = []
    arrival = 0.0
    while arrival < bounds.seconds and len(requests) < bounds.requests:
        own = PrefixBlock(len(requests), workload.input_tokens - shared)
        blocks = (PrefixBlock(COMMON_PREFIX, shared), own) if shared else (own,)
        requests.append(ScaledRequest(arrival, workload.input_tokens, workload.output_tokens, blocks))
        arrival += chance.expovariate(workload.peak_requests_per_second)
    return Questions(StatedWorkload(workload), tuple(requests), "", ())


def read_requests(path: Path, bounds: Bounds) -> Questions:
    """Return the busiest part of a trace, within the bounds.

    path: A trace in a format of `blueprints tune`.
    Raises UserError if the trace cannot be read, or fewer than two of its requests are within the bounds.
    """
    trace = read_trace(path)
    part = [each for each in busiest(trace.requests) if each.arrival_seconds < bounds.seconds]
    fitting = [each for each in part if each.input_tokens + each.output_tokens <= bounds.context_length]
    chosen = fitting[: bounds.requests]
    if len({each.arrival_seconds for each in chosen}) < 2:  # noqa: PLR2004 - a rate needs two times
        raise UserError(
            f"{path}: only {len(chosen)} requests of its busiest {bounds.seconds:g} s fit a context of "
            f"{bounds.context_length:,} tokens; at least two, at different times, are needed: raise "
            "--seconds, or the lengths in the blueprint's workload section"
        )
    notes = [f"{len(chosen):,} of {len(trace.requests):,} recorded requests were sent: the busiest part."]
    if len(fitting) < len(part):
        notes.append(
            f"{len(part) - len(fitting)} were left out: longer than {bounds.context_length:,} tokens."
        )
    if trace.rounded:
        notes.append(
            "The trace's times are rounded: requests with equal times were spread up to the next time."
        )
    first = chosen[0].arrival_seconds
    chosen = [replace(each, arrival_seconds=each.arrival_seconds - first) for each in chosen]
    return Questions(
        recorded_workload(chosen, BLOCK_TOKENS), tuple(map(_scaled, chosen)), trace.name, tuple(notes)
    )


def blocks_in_words(
    requests: Sequence[ScaledRequest], tokens_per_word: float, template_tokens: int
) -> list[ScaledRequest]:
    """Convert blocks of tokens to blocks of words that have about as many tokens.

    requests: Requests with blocks of tokens.
    tokens_per_word: Mean number of tokens per word, as the endpoint counts them.
    template_tokens: Number of tokens that the chat template adds. The last block is shortened by it.
    """
    return [
        _blocks_in_words(request, tokens_per_word, template_tokens, number)
        for number, request in enumerate(requests)
    ]


def _blocks_in_words(
    request: ScaledRequest, tokens_per_word: float, template_tokens: int, number: int
) -> ScaledRequest:
    """Convert one request. Rounds the ends of blocks, not their lengths, so that errors do not add up."""
    blocks, end_tokens, end_words = [], 0, 0
    total = max(1, request.input_tokens - template_tokens)
    for block in request.blocks:
        end_tokens = min(end_tokens + block.tokens, total)
        words = round(end_tokens / tokens_per_word) - end_words
        if words > 0:
            blocks.append(PrefixBlock(block.identity, words))
        end_words += max(0, words)
    return replace(request, blocks=tuple(blocks) or (PrefixBlock(COMMON_PREFIX - 1 - number, 1),))


def _scaled(request: RecordedRequest) -> ScaledRequest:
    """Split a recorded prompt into its blocks. The last block is shorter."""
    whole, blocks = request.input_tokens, []
    for identity in request.block_ids:
        blocks.append(PrefixBlock(identity, min(BLOCK_TOKENS, whole)))
        whole -= blocks[-1].tokens
    return ScaledRequest(request.arrival_seconds, request.input_tokens, request.output_tokens, tuple(blocks))


Say = Callable[[str], None]

_TIMEOUT_SECONDS = 120.0
_SAMPLE_WORDS = 256
_SEED_BITS = 31


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """How many tokens an endpoint's tokenizer counts."""

    per_word: float
    """Mean number of tokens per word."""
    template: int
    """Number of tokens that the chat template adds."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The result of a benchmark."""

    blueprint: Blueprint
    model_index: int
    """`blueprint`, `model_index`: The measured model."""
    url: str
    simulated: bool
    """Whether the endpoint reports simulated engines."""
    questions: Questions
    measurement: Measurement
    """The measured figures. Prices are those of the blueprint's nodes, divided by the tokens."""
    capacity: ServingCapacity
    """The model's accelerators and their price."""
    judged: tuple[JudgedObjective, ...]
    """The objectives, or the defaults of the checks where the blueprint states none, beside the measured
    latencies."""
    replayed: SimulatedReplay | None
    """Simulated offline replay of the same requests on the blueprint's workers. None if it is not
    possible."""
    notes: tuple[str, ...]
    """What was left out."""


def benchmark(
    blueprint: Blueprint,
    model_index: int,
    url: str,
    load_generator: LoadGenerator,
    say: Say,
    *,
    name: str,
    access: Access,
    questions: Questions,
) -> Benchmark:
    """Measure an endpoint and compare it with an offline replay.

    blueprint, model_index: The model, its workload and its workers.
    url: The endpoint, with or without ``/v1``.
    load_generator: Sends the requests.
    say: Shows a line of progress.
    name: A name of the model, for requests.
    access: API key and certificates for the endpoint.
    questions: The requests, as `prepare` returns them.
    Raises UserError if the endpoint does not serve the model, or aiperf fails.
    """
    model = blueprint.spec.models[model_index]
    plan = build_plan(blueprint)
    base_url = endpoint(url)
    with load_generator.open_address(base_url) as address:
        simulated, tokens = asyncio.run(_probe(access, address, name))
    say(f"sending {len(questions.requests):,} requests to {name} with aiperf {load_generators.VERSION}")
    outcomes = load_generators.outcomes(load_generator.ask(load_test(base_url, name, questions, tokens)))
    replayed, notes = _replayed(blueprint, model_index, questions)
    capacity = capacity_of({model.name}, summarise(blueprint, plan))
    measurement = measure(outcomes, Basis(_arrivals(outcomes), capacity, simulated=False, profiled=True))
    return Benchmark(
        blueprint,
        model_index,
        url,
        simulated,
        questions,
        measurement,
        capacity,
        judge(objectives_of(model), percentile_of(outcomes)),
        replayed,
        (*questions.notes, *notes),
    )


def endpoint(url: str) -> str:
    """Return an endpoint without ``/v1``.

    url: The address that the user gives.
    Raises UserError if it is not an HTTP address.
    """
    if not url.startswith(("http://", "https://")):
        raise UserError(f"got {url!r}, expected an address such as http://127.0.0.1:8000")
    return url.rstrip("/").removesuffix("/v1")


def prepare(
    blueprint: Blueprint, model_index: int, *, trace: Path | None, seconds: float, requests: int
) -> Questions:
    """Return the requests for a model. Nothing is sent.

    trace: File with requests to send instead of the `workload` section.
    seconds, requests: Maximum duration of the arrivals and maximum number of requests.
    Raises UserError if the trace cannot be used.
    """
    contexts = [
        process.engine.max_model_len
        for deployment in build_plan(blueprint).models[model_index].deployments
        for process in deployment.workers
        if process.engine
    ]
    bounds = Bounds(seconds, requests, min(contexts))
    if trace:
        return read_requests(trace, bounds)
    model = blueprint.spec.models[model_index]
    return generate_requests(model_traffic(blueprint.spec, model).means, bounds)


def load_test(
    base_url: str, model: str, questions: Questions, tokens: TokenCounts
) -> load_generators.LoadTest:
    """Return a load test with random prompts of the wanted token lengths, different for each call.

    model: Name of the model to ask.
    tokens: Token counts of the endpoint.
    """
    seed = secrets.randbits(_SEED_BITS)
    asked = [
        load_generators.Question(
            request.arrival_seconds,
            tuple((block.tokens, block_seed(seed, block.identity)) for block in request.blocks),
            request.output_tokens,
        )
        for request in blocks_in_words(questions.requests, tokens.per_word, tokens.template)
    ]
    return load_generators.LoadTest(base_url, model, one_token_words(), asked)


async def _probe(access: Access, base_url: str, model: str) -> tuple[bool, TokenCounts]:
    """Ask the endpoint whether its engines are simulated, and measure its token counts."""
    async with access.session() as session:
        try:
            served = await served_models(session, base_url, timeout_seconds=_TIMEOUT_SECONDS)
        except ListingFailedError as error:
            raise UserError(
                f"{base_url}/v1/models: {error}; check that the endpoint is up and that the port is right"
            ) from error
        if model not in served.names:
            names = ", ".join(served.names) or "none"
            raise UserError(
                f"{base_url} does not serve {model}; it serves: {names}; choose a model with --model"
            )
        if served.on_processors:
            raise UserError(
                f"{base_url}: its engines run on processors, where times mean nothing; measure an endpoint "
                "with accelerators or with simulated engines"
            )
        client = CompletionClient(
            session, base_url, model, timeout_seconds=_TIMEOUT_SECONDS, clock=time.monotonic
        )
        seed = secrets.randbits(_SEED_BITS)
        counts = [await _prompt_tokens(client, random_text(words, seed)) for words in (1, 1 + _SAMPLE_WORDS)]
    tokens_per_word = (counts[1] - counts[0]) / _SAMPLE_WORDS
    if tokens_per_word <= 0:
        raise UserError(
            f"{base_url}: the reported token counts cannot be right: {counts[0]} prompt tokens for 1 word, "
            f"{counts[1]} for {1 + _SAMPLE_WORDS} words"
        )
    return served.simulated, TokenCounts(tokens_per_word, max(0, round(counts[0] - tokens_per_word)))


async def _prompt_tokens(client: CompletionClient, prompt: str) -> int:
    outcome = await client.complete(prompt, 1, due_seconds=time.monotonic())
    if outcome.failure or outcome.usage is None:
        detail = f" ({outcome.failure_detail})" if outcome.failure_detail else ""
        raise UserError(f"the first request failed: {outcome.failure or 'the answer has no usage'}{detail}")
    return outcome.usage.prompt_tokens


def _replayed(
    blueprint: Blueprint, model_index: int, questions: Questions
) -> tuple[SimulatedReplay | None, tuple[str, ...]]:
    """Replay the same requests offline on the blueprint's workers, or return the reason why not."""
    model = blueprint.spec.models[model_index]
    if len(model.deployments) > 1:
        return None, (
            "Not replayed: the offline replay supports one deployment, and this model has several.",
        )
    processes = build_plan(blueprint).models[model_index].deployments[0].workers
    workers = simulated_workers(resolve(blueprint, model_index, 0), processes)
    try:
        return questions.demand.replay(workers, router_of(model), questions.demand.series[0]), ()
    except MissingProfileError as error:
        return None, (f"Not replayed: {error}.",)


def _arrivals(outcomes: Sequence[RequestOutcome]) -> float:
    """Return the duration of the arrivals: their span plus one mean gap, in seconds."""
    span = outcomes[-1].sent_seconds - outcomes[0].sent_seconds
    return max(span * len(outcomes) / max(1, len(outcomes) - 1), 1.0)
