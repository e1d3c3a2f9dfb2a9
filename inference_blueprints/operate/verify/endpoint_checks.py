"""Sends requests to a model and checks the answers: tokens, counts, cache hits, latencies."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator

import aiohttp

from inference_blueprints.measure.completions.completion_client import (
    UNREACHABLE,
    CompletionClient,
    RequestOutcome,
)
from inference_blueprints.measure.completions.served_models import (
    ListingFailedError,
    ServedModels,
    served_models,
)
from inference_blueprints.measure.statistics import percentile_of
from inference_blueprints.operate.check_results import CheckResult, Severity
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.verify import answer_checks
from inference_blueprints.operate.verify.answer_checks import embeddings, generated_images, scores
from inference_blueprints.operate.verify.serving_access import ANSWER_SECONDS, ServedPlatform
from inference_blueprints.serving.estimates.request_estimates import answer_time
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import (
    EACH_TOKEN,
    FIRST_TOKEN,
    LATENCY_NAMES,
    WHOLE_REQUEST,
    JudgedObjective,
    LatencyKind,
    Model,
    judge,
)
from inference_contracts.records import dataclass

#: Requests of the small load, sent one by one.
SMALL_LOAD = 5
_FIRST_WORDS, _FIRST_TOKENS = 64, 16
_REPEATED_TOKENS = 512
_MAX_REPEATS = 9
#: In a new text, only the chat template can be cached. A decode worker of vLLM also counts blocks that it
#: received as cached (``num_external_computed_tokens``).
_UNSEEN_SHARE = 0.5
_MAX_OUTPUT_TOKENS = 128
_PERCENT = 90.0
_WORDS = ("river", "stone", "light", "paper", "green", "water", "house", "table", "music", "north", "plant")


@dataclass(frozen=True, slots=True)
class CheckedEndpoint:
    """The endpoint that is checked."""

    label: str
    """Name in messages, such as ``qwen3-8b/main``."""
    base_url: str
    model: Model
    workers: int
    """Number of workers that can answer, over all roles that read prompts."""
    timeout_seconds: float = ANSWER_SECONDS
    """Maximum time of one answer."""
    asked: str = ""
    """Name of the model in requests; its own if it is empty."""

    @property
    def name(self) -> str:
        """Name of the model in requests."""
        return self.asked or self.model.name


async def ask(endpoint: CheckedEndpoint) -> AsyncIterator[CheckResult]:
    """Send a few requests to a model, one at a time.

    Yields: Results of the checks ``models``, ``tokens``, ``structured output``, ``prefix cache`` and
        ``objectives``; for an embedding model, of ``models`` and ``embeddings``; for a reranking model, of
        ``models`` and ``scores``; for a model that makes images, of ``models`` and ``images``.
    """
    async with aiohttp.ClientSession() as session:
        served, listed = await _listed(session, endpoint)
        yield listed
        if endpoint.model.only_reads:
            name, seconds = endpoint.name, endpoint.timeout_seconds
            question = embeddings if endpoint.model.task == "embed" else scores
            yield await question(session, endpoint.base_url, name, endpoint.label, seconds)
            return
        if images := own_means(endpoint.model).images:
            name, seconds = endpoint.name, endpoint.timeout_seconds
            yield await generated_images(
                session, endpoint.base_url, name, endpoint.label, seconds, images=images
            )
            return
        client = CompletionClient(
            session,
            endpoint.base_url,
            endpoint.name,
            timeout_seconds=endpoint.timeout_seconds,
            clock=time.monotonic,
        )
        checks = _EndpointChecks(endpoint, client, served)
        tokens_a_word, tokens = await checks.tokens()
        yield tokens
        if tokens_a_word is None:
            for check in (answer_checks.STRUCTURED_OUTPUT_CHECK, "prefix cache", "objectives"):
                yield CheckResult(
                    check, "unknown", f"{endpoint.label}: not checked, because tokens are not counted"
                )
            return
        yield await _structured_output(session, endpoint, served)
        yield await checks.prefix_cache(tokens_a_word)
        for result in await checks.objectives(tokens_a_word):
            yield result


async def _listed(
    session: aiohttp.ClientSession, endpoint: CheckedEndpoint
) -> tuple[ServedModels | None, CheckResult]:
    """Check that the endpoint serves the model."""
    label, name = endpoint.label, endpoint.name
    try:
        served = await served_models(session, endpoint.base_url, timeout_seconds=endpoint.timeout_seconds)
    except ListingFailedError as error:
        return None, CheckResult("models", "error", f"{label}: {endpoint.base_url}/v1/models: {error}")
    if name not in served.names:
        names = ", ".join(served.names) or "none"
        return served, CheckResult(
            "models", "error", f"{label}: {name} is not served; served models: {names}"
        )
    return served, CheckResult("models", "ok", f"{label}: {name} is served")


async def _structured_output(
    session: aiohttp.ClientSession, endpoint: CheckedEndpoint, served: ServedModels | None
) -> CheckResult:
    """Ask for an answer in a JSON schema, unless the engine only simulates answers."""
    if served is not None and served.simulated:
        message = f"{endpoint.label}: not checked: a simulated engine makes up a value of every schema"
        return CheckResult(answer_checks.STRUCTURED_OUTPUT_CHECK, "unknown", message)
    return await answer_checks.structured_output(
        session, endpoint.base_url, endpoint.name, endpoint.label, endpoint.timeout_seconds
    )


class _EndpointChecks:
    """Requests to one model."""

    def __init__(
        self, endpoint: CheckedEndpoint, client: CompletionClient, served: ServedModels | None
    ) -> None:
        self._label = endpoint.label
        self._model = endpoint.model
        self._workers = endpoint.workers
        self._client = client
        self._simulated = " (simulated)" if served is not None and served.simulated else ""
        self._timed = served is None or not served.on_processors

    async def tokens(self) -> tuple[float | None, CheckResult]:
        """Check that tokens are generated and counted correctly; return the tokens per word."""
        opening = await self._complete(_text(1), 1)
        outcome = await self._complete(_text(_FIRST_WORDS), _FIRST_TOKENS)
        for each in (opening, outcome):
            if each.failure:
                return None, self._observe("tokens", "error", f"no tokens: {_reason(each)}")
        if opening.usage is None or outcome.usage is None:
            return None, self._observe("tokens", "error", "tokens arrive, but 'usage' is missing")
        more = outcome.usage.prompt_tokens - opening.usage.prompt_tokens
        if outcome.usage.completion_tokens != _FIRST_TOKENS or more <= 0:
            message = (
                f"usage counts {outcome.usage.completion_tokens} tokens for an answer of {_FIRST_TOKENS}, "
                f"and {more} tokens for {_FIRST_WORDS - 1} more words in a prompt"
            )
            return None, self._observe("tokens", "error", message)
        message = f"{_FIRST_TOKENS} tokens streamed and counted"
        if self._timed:
            first = f"{outcome.time_to_first_token_ms or 0:,.0f} ms{self._simulated}"
            message = f"{message}, the first one after {first}"
        return more / (_FIRST_WORDS - 1), self._observe("tokens", "ok", message)

    async def prefix_cache(self, tokens_a_word: float) -> CheckResult:
        """Repeat a prompt until a worker finds it in its cache, at most once more than there are workers."""
        prompt = _text(round(_REPEATED_TOKENS / tokens_a_word))
        first, found, repeats = 0, 0, min(self._workers + 1, _MAX_REPEATS)
        for repeat in range(repeats + 1):
            outcome = await self._complete(prompt, 1)
            if outcome.failure or outcome.usage is None:
                return self._observe("prefix cache", "error", f"a repeated prompt fails: {_reason(outcome)}")
            cached = outcome.usage.cached_tokens or 0
            if repeat == 0 and cached > outcome.usage.prompt_tokens * _UNSEEN_SHARE:
                message = (
                    f"{cached} of {outcome.usage.prompt_tokens} tokens of a new prompt are counted as "
                    "cached; the count includes blocks from prefill workers"
                )
                return self._observe("prefix cache", "unknown", message)
            first = cached if repeat == 0 else first
            found = cached
            if found > first:
                message = (
                    f"{found} of {outcome.usage.prompt_tokens} prompt tokens are cached on repeat {repeat}"
                )
                return self._observe("prefix cache", "ok", message)
        message = f"a prompt that was sent {repeats + 1} times has only {found} cached tokens"
        if repeats <= self._workers and self._model.routing.chosen != "kvAware":
            return self._observe(
                "prefix cache", "unknown", f"{message}; there are more workers than requests"
            )
        return self._observe("prefix cache", "error", f"{message}; prefix caching or KV events do not work")

    async def objectives(self, tokens_a_word: float) -> list[CheckResult]:
        """Send a small load of the workload's lengths, and compare latencies with the objectives."""
        workload = own_means(self._model)
        words = max(1, round(workload.input_tokens / tokens_a_word))
        shared_words = round(words * workload.shared_prefix_ratio)
        shared = _text(shared_words)
        output_tokens = max(2, min(workload.output_tokens, _MAX_OUTPUT_TOKENS))
        outcomes = [
            await self._complete(shared + _text(words - shared_words), output_tokens)
            for _ in range(SMALL_LOAD + 1)
        ][1:]  # the first one fills the cache with the shared prefix
        failed = [outcome for outcome in outcomes if outcome.failure]
        if failed:
            message = f"{len(failed)} of {SMALL_LOAD} requests failed: {_reason(failed[0])}"
            return [self._observe("objectives", "error", message)]
        prompt_tokens = [outcome.usage.prompt_tokens for outcome in outcomes if outcome.usage]
        mean = sum(prompt_tokens) / len(prompt_tokens) if prompt_tokens else 0
        load = f"{SMALL_LOAD} requests of {mean:,.0f} and {output_tokens} tokens, one at a time"
        if not self._timed:
            message = f"{load}, were answered; the engines run on processors, where times mean nothing"
            return [self._observe("objectives", "unknown", f"not compared: {message}")]
        of_load = percentile_of(outcomes)

        def percentile_ms(kind: LatencyKind, percent: float) -> float | None:
            first, each = of_load(FIRST_TOKEN, percent), of_load(EACH_TOKEN, percent)
            if kind != WHOLE_REQUEST or output_tokens == workload.output_tokens:
                return of_load(kind, percent)
            # The answers here are shorter than the workload's.
            if first is None or each is None:
                return None
            return answer_time(workload.output_tokens, first, each)

        stated = self._model.stated_objectives
        kinds = {each.kind for each in stated}
        unstated: list[LatencyKind] = [kind for kind in (FIRST_TOKEN, EACH_TOKEN) if kind not in kinds]
        return [
            *(self._compared(each, load) for each in judge(stated, percentile_ms)),
            *(self._only_measured(kind, percentile_ms(kind, _PERCENT), load) for kind in unstated),
        ]

    def _compared(self, judged: JudgedObjective, load: str) -> CheckResult:
        """Say whether an objective is met."""
        what, found = judged.objective.name, judged.value_ms
        if found is None:
            return self._observe("objectives", "unknown", f"{what} cannot be computed from the answers")
        message = (
            f"{what} {found:,.1f} ms{self._simulated}, objective {judged.objective.limit_ms:,.0f} ms; {load}"
        )
        return self._observe("objectives", "ok" if judged.met else "error", message)

    def _only_measured(self, kind: LatencyKind, found: float | None, load: str) -> CheckResult:
        """Say how long a latency is that has no objective."""
        what = LATENCY_NAMES[kind]
        if found is None:
            return self._observe("objectives", "unknown", f"{what} cannot be computed from the answers")
        measured = f"{what} p90 {found:,.1f} ms{self._simulated}"
        return self._observe("objectives", "ok", f"{measured}, no objective is stated; {load}")

    async def _complete(self, prompt: str, output_tokens: int) -> RequestOutcome:
        return await self._client.complete(prompt, output_tokens, due_seconds=time.monotonic())

    def _observe(self, check: str, severity: Severity, message: str) -> CheckResult:
        return CheckResult(check, severity, f"{self._label}: {message}")


def _text(words: int) -> str:
    """Return a text with a unique beginning, which no cache has."""
    if not words:
        return ""
    return " ".join([secrets.token_hex(4), *(secrets.choice(_WORDS) for _ in range(words - 1))]) + " "


def _reason(outcome: RequestOutcome) -> str:
    """Return why a request failed, with the endpoint's message."""
    reason = outcome.failure or "no usage"
    return f"{reason} ({outcome.failure_detail})" if outcome.failure_detail else reason


#: Maximum time in seconds for an answer at a model's name, which is reachable only in the VPC.
_ROUTE_SECONDS = 5.0
_NO_KEY = "HTTP 401"


def answers(endpoint: CheckedEndpoint) -> list[CheckResult]:
    """Check one model and wait for all results."""
    return asyncio.run(_collected(ask(endpoint)))


async def _collected(results: AsyncIterator[CheckResult]) -> list[CheckResult]:
    return [result async for result in results]


def deployments(served: ServedPlatform) -> Iterator[CheckResult]:
    """Check every deployment of every model through its frontend."""
    for model, plan in zip(served.blueprint.spec.models, served.plan.models, strict=True):
        for deployment in plan.deployments:
            yield from _deployment(served, model, deployment)


def _deployment(served: ServedPlatform, model: Model, deployment: DeploymentPlan) -> Iterator[CheckResult]:
    """Check one deployment."""
    entry = deployment.entry_point
    instances = served.access.instances(deployment)
    ready = [each for each in instances[entry.name] if each.is_ready]
    label = f"{model.name}/{deployment.name}"
    lent = sum(len(instances[process.name]) for process in deployment.workers if process.lent_most)
    if deployment.may_have_no_worker and not lent:
        yield CheckResult("tokens", "unknown", f"{label}: not asked, because batch has no workers now")
        return
    if not ready:
        yield CheckResult("tokens", "error", f"{label}: no {entry.name} is ready")
        return
    workers = sum(process.replicas for process in deployment.workers) or lent
    try:
        with served.access.open_frontend(deployment, ready[0]) as base_url:
            yield from answers(CheckedEndpoint(label, base_url, model, workers, served.access.answer_seconds))
    except KubectlFailed as failure:
        message = f"{label}: {ready[0].name} cannot be reached: {' '.join(str(failure).split())}"
        yield CheckResult("tokens", "error", message)


def routes(served: ServedPlatform) -> Iterator[CheckResult]:
    """Check every model at the address that its callers use, which may be reachable only from the VPC.

    Behind a front door, that address asks for a key, too: it would be a way around. On one machine, the
    models have addresses of the loopback interface, and no such names.
    """
    door = served.blueprint.spec.front_door
    leads_to_door = door is not None and door.old_host_names.models is None
    for model in served.blueprint.spec.models:
        known = served.access.model_address(model.name)
        address, asks_for_key = known.url, leads_to_door and known.only_in_vpc
        if model.may_have_no_worker:
            message = f"{address}: not asked, because batch may have no workers of {model.name} now"
            yield CheckResult("routes", "unknown", message)
            continue
        try:
            names = asyncio.run(_listed_models(address.removesuffix("/v1"))).names
        except ListingFailedError as error:
            if asks_for_key and error.reason == _NO_KEY:
                yield CheckResult("routes", "ok", f"{address} asks for a key, as the front door does")
            elif known.only_in_vpc and error.reason in UNREACHABLE:
                message = f"{address} cannot be reached from here; run this within the VPC ({error})"
                yield CheckResult("routes", "unknown", message)
            else:
                message = f"{address} answers {error}; check what is behind its load balancer"
                yield CheckResult("routes", "error", message, known.command)
            continue
        if asks_for_key:
            message = f"{address} answers without a key: whoever reaches it gets around the front door"
            yield CheckResult("routes", "error", message, known.command)
        elif model.name in names:
            yield CheckResult("routes", "ok", f"{address} serves {model.name}")
        else:
            others = ", ".join(names) or "none"
            yield CheckResult("routes", "error", f"{address} serves {others}, not {model.name}")


async def _listed_models(base_url: str) -> ServedModels:
    async with aiohttp.ClientSession() as session:
        return await served_models(session, base_url, timeout_seconds=_ROUTE_SECONDS)
