"""From an endpoint and a blueprint to what was measured, beside what the offline replay says of the same."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.benchmarking import aiperf
from inference_blueprints.benchmarking.asking import Access, Asker
from inference_blueprints.benchmarking.questions import Bounds, Questions, in_words, recorded, stated
from inference_blueprints.completions.client import CompletionClient
from inference_blueprints.completions.models import ListingFailedError, served_models
from inference_blueprints.completions.outcome import Outcome
from inference_blueprints.errors import UserError
from inference_blueprints.local.replay.prompts import block_seed
from inference_blueprints.local.report.cost import Capacity, capacity_of
from inference_blueprints.local.report.measure import Basis, measure
from inference_blueprints.local.report.types import Measurement
from inference_blueprints.local.serving.vocabulary import text_of, words
from inference_blueprints.planning.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.simulation.highest_rate import Limits
from inference_blueprints.simulation.offline_replay import MissingProfileError, ReplayResult
from inference_blueprints.simulation.workers import simulated_workers
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.tuning.workload import limits_of, router_of

Say = Callable[[str], None]

_TIMEOUT_SECONDS = 120.0
_SAMPLE_WORDS = 256
_SEED_BITS = 31


@dataclass(frozen=True, slots=True)
class TokensOf:
    """What an endpoint's tokenizer makes of words.

    Parameters
    ----------
    a_word
        Mean tokens of a word.
    template
        Tokens that the chat template adds.
    """

    a_word: float
    template: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was found.

    Parameters
    ----------
    blueprint, model_index
        The model that was asked.
    url
        The endpoint.
    simulated
        Whether the endpoint says that its engines are simulated.
    questions
        What was asked.
    measurement
        What came of it; the price is that of the blueprint's nodes over the tokens.
    capacity
        The model's accelerators, and their price.
    limits
        Objectives, or what the checks assume where there are none.
    replayed
        The offline replay of the same requests on the blueprint's workers, simulated; None where that cannot
        be made.
    notes
        What was left out.
    """

    blueprint: Blueprint
    model_index: int
    url: str
    simulated: bool
    questions: Questions
    measurement: Measurement
    capacity: Capacity
    limits: Limits
    replayed: ReplayResult | None
    notes: tuple[str, ...]


def benchmark(
    blueprint: Blueprint,
    model_index: int,
    url: str,
    asker: Asker,
    say: Say,
    *,
    access: Access,
    questions: Questions,
) -> Benchmark:
    """Ask an endpoint and compare.

    Parameters
    ----------
    blueprint, model_index
        The model: what it is called, what is asked of it, what it runs on.
    url
        The endpoint, with or without ``/v1``.
    asker
        From where it is asked.
    say
        Told what takes a while.
    access
        What the endpoint asks of its callers.
    questions
        The requests, of `prepare`.

    Raises
    ------
    UserError
        If the endpoint does not serve the model, or aiperf fails.
    """
    model = blueprint.spec.models[model_index]
    plan = build_plan(blueprint)
    base_url = endpoint(url)
    with asker.introduction(base_url) as address:
        simulated, tokens = asyncio.run(_acquaint(access, address, model.name))
    say(f"asking {model.name} {len(questions.requests):,} times with aiperf {aiperf.VERSION}")
    outcomes = aiperf.outcomes(asker.ask(errand(base_url, model.name, questions, tokens)))
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
        limits_of(model),
        replayed,
        (*questions.notes, *notes),
    )


def endpoint(url: str) -> str:
    """Return an endpoint without ``/v1``.

    Parameters
    ----------
    url
        As the user gives it.

    Raises
    ------
    UserError
        If it is no address.
    """
    if not url.startswith(("http://", "https://")):
        raise UserError(f"got {url!r}, expected an address such as http://127.0.0.1:8000")
    return url.rstrip("/").removesuffix("/v1")


def prepare(
    blueprint: Blueprint, model_index: int, *, trace: Path | None, seconds: float, requests: int
) -> Questions:
    """Return the requests for a model, before anybody is asked.

    Parameters
    ----------
    blueprint, model_index
        The model.
    trace
        Requests to send in place of the `workload` section.
    seconds, requests
        How long requests arrive and how many, at the most.

    Raises
    ------
    UserError
        If the trace cannot be used.
    """
    contexts = [
        process.engine.max_model_len
        for deployment in build_plan(blueprint).models[model_index].deployments
        for process in deployment.workers
        if process.engine
    ]
    bounds = Bounds(seconds, requests, min(contexts))
    return recorded(trace, bounds) if trace else stated(blueprint.spec.models[model_index].workload, bounds)


def errand(base_url: str, model: str, questions: Questions, tokens: TokensOf) -> aiperf.Errand:
    """Return requests as they are sent: as many words as give the wanted tokens, new ones each time.

    Parameters
    ----------
    base_url
        Endpoint without ``/v1``.
    model
        Name of the model to ask.
    questions
        The requests.
    tokens
        What the endpoint makes of words.
    """
    seed = secrets.randbits(_SEED_BITS)
    asked = [
        aiperf.Question(
            request.arrival_seconds,
            tuple((block.tokens, block_seed(seed, block.identity)) for block in request.blocks),
            request.output_tokens,
        )
        for request in in_words(questions.requests, tokens.a_word, tokens.template)
    ]
    return aiperf.Errand(base_url, model, words(), asked)


async def _acquaint(access: Access, base_url: str, model: str) -> tuple[bool, TokensOf]:
    """Find out whether the engines are simulated, how many tokens a word has, and the chat template's."""
    async with access.session() as session:
        try:
            served = await served_models(session, base_url, timeout_seconds=_TIMEOUT_SECONDS)
        except ListingFailedError as error:
            raise UserError(f"{base_url}/v1/models: {error}; is it up, and its port right?") from error
        if model not in served.names:
            names = ", ".join(served.names) or "none"
            raise UserError(f"{base_url}: {model} is not served; served are: {names}; choose with --model")
        client = CompletionClient(
            session, base_url, model, timeout_seconds=_TIMEOUT_SECONDS, clock=time.monotonic
        )
        seed = secrets.randbits(_SEED_BITS)
        counts = [await _prompt_tokens(client, text_of(words, seed)) for words in (1, 1 + _SAMPLE_WORDS)]
    tokens_a_word = (counts[1] - counts[0]) / _SAMPLE_WORDS
    if tokens_a_word <= 0:
        raise UserError(
            f"{base_url}: usage counts {counts[0]} tokens for a word and {counts[1]} for {_SAMPLE_WORDS} more"
        )
    return served.simulated, TokensOf(tokens_a_word, max(0, round(counts[0] - tokens_a_word)))


async def _prompt_tokens(client: CompletionClient, prompt: str) -> int:
    outcome = await client.complete(prompt, 1, due_seconds=time.monotonic())
    if outcome.failure or outcome.usage is None:
        detail = f" ({outcome.failure_detail})" if outcome.failure_detail else ""
        raise UserError(f"a first request brought no tokens: {outcome.failure or 'no usage'}{detail}")
    return outcome.usage.prompt_tokens


def _replayed(
    blueprint: Blueprint, model_index: int, questions: Questions
) -> tuple[ReplayResult | None, tuple[str, ...]]:
    """Replay the same requests offline on the blueprint's own workers, or say why not."""
    model = blueprint.spec.models[model_index]
    if len(model.deployments) > 1:
        return None, ("Not replayed: several deployments share the requests.",)
    processes = build_plan(blueprint).models[model_index].deployments[0].workers
    workers = simulated_workers(resolve(blueprint, model_index, 0), processes)
    try:
        return questions.demand.replay(workers, router_of(model), questions.demand.series[0]), ()
    except MissingProfileError as error:
        return None, (f"Not replayed: {error}.",)


def _arrivals(outcomes: Sequence[Outcome]) -> float:
    """Return how long requests arrived: one more gap than there is between them."""
    span = outcomes[-1].sent_seconds - outcomes[0].sent_seconds
    return max(span * len(outcomes) / max(1, len(outcomes) - 1), 1.0)
