"""Runs a replay: sends one test request, then each request when it is due, and waits for the last."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import aiohttp

from inference_blueprints.measure.completions.completion_client import CompletionClient
from inference_blueprints.measure.completions.counted_stream import CountingClient
from inference_blueprints.measure.completions.image_client import ImageClient
from inference_blueprints.measure.completions.request_outcome import RequestOutcome
from inference_blueprints.measure.replay.open_loop import OpenLoop, Pacing, ProgressCallback
from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.ramp import POINTS, RampPoints, apply_ramp, long_enough
from inference_blueprints.measure.replay.recorded_trace import shipped_trace
from inference_blueprints.measure.replay.replay_result import ReplayResult
from inference_blueprints.measure.replay.scaled_trace import ReplayError, scale
from inference_blueprints.measure.statistics.percentiles import percentile
from inference_blueprints.measure.tokenizer.vocabulary import random_text
from inference_blueprints.spec.types import Workload
from inference_contracts.units import MILLISECONDS_PER_SECOND

#: Requests arrive for this long: twice the busiest minute, which is scaled to the peak rate.
DEFAULT_SECONDS = 120.0
DEFAULT_REQUEST_TIMEOUT_SECONDS = 120.0
DEFAULT_IN_FLIGHT_LIMIT = 512
_SEED_BITS = 31
#: Length of prompts for images. A blueprint states none, because it decides neither memory nor time.
_IMAGE_PROMPT_TOKENS = 32


async def replay_async(
    endpoint_base_url: str,
    model: str,
    workload: Workload,
    context_length: int,
    *,
    seconds: float = DEFAULT_SECONDS,
    on_progress: ProgressCallback | None = None,
    seed: int | None = None,
    request_timeout_seconds: float = DEFAULT_REQUEST_TIMEOUT_SECONDS,
    in_flight_limit: int = DEFAULT_IN_FLIGHT_LIMIT,
    follows_ramp: bool = False,
    ramp: RampPoints = POINTS,
) -> ReplayResult:
    """Replay a recorded trace, scaled to a workload, against an OpenAI endpoint.

    endpoint_base_url: Base URL such as ``http://127.0.0.1:8000``, with or without ``/v1``.
    model: Name under which the endpoint serves the model.
    workload: Rate, lengths and sharing that the trace is scaled to.
    context_length: The model's limit for prompt and answer together, in tokens.
    seconds: How long requests arrive.
    on_progress: Called when a request is sent or ends.
    seed: Seed of the text of the prompts. By default random, so that an earlier replay did not fill the
        cache.
    request_timeout_seconds: Maximum time from sending a request to the end of its answer. It also limits the
        replay.
    in_flight_limit: Maximum number of requests in flight. A request above it is not sent and counts as
        failed.
    follows_ramp: Whether the rate rises to the peak and falls again, and every token of every stream is
        counted.
    ramp: How the rate rises and falls.
    Returns: One outcome per request. Failed requests are counted by reason.
    Raises ReplayError if the endpoint does not answer the first request, or stops answering.
    """
    trace = shipped_trace()
    seed = secrets.randbits(_SEED_BITS) if seed is None else seed
    pacing = Pacing()
    base_url = endpoint_base_url.rstrip("/").removesuffix("/v1")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        kind: Callable[..., CompletionClient] = CountingClient if follows_ramp else CompletionClient
        if workload.images:
            kind = partial(ImageClient, images=workload.images)
        client = kind(session, base_url, model, timeout_seconds=request_timeout_seconds, clock=pacing.clock)
        template_tokens = await _template_tokens(client, base_url, random_text(1, seed))
        if follows_ramp:
            trace = long_enough(trace, workload.peak_requests_per_second, seconds)
        scaled = scale(
            trace, _in_tokens(workload), context_length, seconds=seconds, template_tokens=template_tokens
        )
        if follows_ramp:
            scaled = replace(scaled, requests=apply_ramp(scaled.requests, seconds, seed, ramp))
        open_loop = OpenLoop(
            client,
            PromptWriter(random_text, seed),
            in_flight_limit=in_flight_limit,
            pacing=pacing,
            on_progress=on_progress,
        )
        processor_before, before = time.thread_time(), time.perf_counter()
        outcomes = await open_loop.send(scaled.requests)
        processor_share = (time.thread_time() - processor_before) / (time.perf_counter() - before)
    return ReplayResult(
        model=model,
        trace=trace,
        workload=workload,
        scaled=scaled,
        outcomes=tuple(outcomes),
        template_tokens=template_tokens,
        elapsed_seconds=max(outcome.ended_seconds for outcome in outcomes),
        client_cpu_share=processor_share,
        lateness_p99_ms=_lateness_p99_ms(outcomes),
        seed=seed,
    )


def _in_tokens(workload: Workload) -> Workload:
    """Return a workload with the lengths that a trace is scaled to: for images, only prompts have one."""
    if workload.images is None:
        return workload
    return workload.model_copy(update={"input_tokens": _IMAGE_PROMPT_TOKENS, "output_tokens": 1})


async def _template_tokens(client: CompletionClient, base_url: str, word: str) -> int:
    """Request one token. The prompt tokens except the word are those of the chat template."""
    outcome = await client.complete(word, 1, due_seconds=0.0)
    if outcome.failure is not None:
        detail = f" ({outcome.failure_detail})" if outcome.failure_detail else ""
        raise ReplayError(f"{base_url} did not answer the first request: {outcome.failure}{detail}")
    return max(0, outcome.usage.prompt_tokens - 1) if outcome.usage else 0


def _lateness_p99_ms(outcomes: Sequence[RequestOutcome]) -> float:
    """Return the 99th percentile of how late requests were sent, in milliseconds."""
    late = [(outcome.sent_seconds - outcome.due_seconds) * MILLISECONDS_PER_SECOND for outcome in outcomes]
    return percentile(late, 99) or 0.0
