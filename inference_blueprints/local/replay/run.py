"""A replay from beginning to end: ask once, then send each request when it is due and wait for the last."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp

from inference_blueprints.local.replay.client import CompletionClient
from inference_blueprints.local.replay.open_loop import OpenLoop, Pacing, Progress, ProgressCallback
from inference_blueprints.local.replay.outcome import Outcome, ReplayResult
from inference_blueprints.local.replay.percentiles import percentile
from inference_blueprints.local.replay.prompts import PromptWriter, TextOf
from inference_blueprints.local.replay.scale import ReplayError, scale
from inference_blueprints.local.replay.trace import Trace, shipped_trace
from inference_blueprints.local.serving.vocabulary import text_of as vocabulary_text_of
from inference_blueprints.spec.types import Workload

#: Requests arrive for this long, so that the busiest minute of the workload fits; answers end a little later.
DEFAULT_SECONDS = 60.0
DEFAULT_REQUEST_TIMEOUT_SECONDS = 120.0
DEFAULT_IN_FLIGHT_LIMIT = 512
_SEED_BITS = 31
_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class Target:
    """A model to replay against.

    Parameters
    ----------
    endpoint_base_url
        Such as ``http://127.0.0.1:8000``, with or without ``/v1``.
    model
        Name under which the endpoint serves the model.
    workload
        Rate, lengths and sharing that the trace is scaled to.
    context_length
        The model's limit for prompt and answer together, in tokens.
    """

    endpoint_base_url: str
    model: str
    workload: Workload
    context_length: int


def replay(
    endpoint_base_url: str,
    model: str,
    workload: Workload,
    context_length: int,
    *,
    seconds: float = DEFAULT_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> ReplayResult:
    """Replay the shipped trace, scaled to a workload, against an OpenAI endpoint.

    Parameters
    ----------
    endpoint_base_url
        Such as ``http://127.0.0.1:8000``, with or without ``/v1``.
    model
        Name under which the endpoint serves the model.
    workload
        Rate, lengths and sharing that the trace is scaled to.
    context_length
        The model's limit for prompt and answer together, in tokens.
    seconds
        How long requests arrive.
    on_progress
        Called when a request is sent or ends, from the same thread.

    Returns
    -------
    ReplayResult
        Failed requests are in it, counted by reason.

    Raises
    ------
    ReplayError
        If the endpoint does not answer a first request, or goes away.
    """
    target = Target(endpoint_base_url, model, workload, context_length)
    return replay_models([target], seconds=seconds, on_progress=on_progress)[0]


def replay_models(
    targets: Sequence[Target],
    *,
    seconds: float = DEFAULT_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> list[ReplayResult]:
    """Replay the shipped trace against several models at the same time.

    Parameters
    ----------
    targets
        One a model.
    seconds
        How long requests arrive.
    on_progress
        Called with the progress of all together, from the same thread.

    Returns
    -------
    list of ReplayResult
        In the order of `targets`.

    Raises
    ------
    ReplayError
        If one of the endpoints does not answer a first request, or goes away.
    """
    return asyncio.run(_replay_together(targets, seconds, on_progress))


async def _replay_together(
    targets: Sequence[Target], seconds: float, on_progress: ProgressCallback | None
) -> list[ReplayResult]:
    """Replay against each target in a task of its own."""
    progress = _SummedProgress(on_progress)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    replay_async(
                        target.endpoint_base_url,
                        target.model,
                        target.workload,
                        target.context_length,
                        seconds=seconds,
                        on_progress=progress.of(position),
                    )
                )
                for position, target in enumerate(targets)
            ]
    except ExceptionGroup as failed:  # the first one ended the others
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]


class _SummedProgress:
    """Adds up the progress of several replays."""

    def __init__(self, on_progress: ProgressCallback | None) -> None:
        self._on_progress = on_progress
        self._latest: dict[int, Progress] = {}

    def of(self, position: int) -> ProgressCallback:
        """Return the callback for one of the replays."""

        def take(progress: Progress) -> None:
            self._latest[position] = progress
            if self._on_progress:
                latest = self._latest.values()
                self._on_progress(
                    Progress(
                        done=sum(each.done for each in latest),
                        total=sum(each.total for each in latest),
                        in_flight=sum(each.in_flight for each in latest),
                    )
                )

        return take


async def replay_async(
    endpoint_base_url: str,
    model: str,
    workload: Workload,
    context_length: int,
    *,
    seconds: float = DEFAULT_SECONDS,
    on_progress: ProgressCallback | None = None,
    trace: Trace | None = None,
    text_of: TextOf = vocabulary_text_of,
    seed: int | None = None,
    request_timeout_seconds: float = DEFAULT_REQUEST_TIMEOUT_SECONDS,
    in_flight_limit: int = DEFAULT_IN_FLIGHT_LIMIT,
    pacing: Pacing | None = None,
) -> ReplayResult:
    """Replay a trace; `replay` says what the first parameters are.

    Parameters
    ----------
    endpoint_base_url, model, workload, context_length, seconds, on_progress
        As for `replay`.
    trace
        Recorded requests; without it the shipped ones.
    text_of
        Text of so many tokens from a seed; without it the words that the local models' tokenizer knows.
    seed
        Of the prompts' text; without it a random one, so that no earlier replay has filled the cache.
    request_timeout_seconds
        Longest time from sending a request to the end of its answer; it bounds the replay as well.
    in_flight_limit
        A request that is due while so many are in flight is not sent and counts as failed.
    pacing
        Clock and sleep.

    Returns
    -------
    ReplayResult
        One outcome a request.

    Raises
    ------
    ReplayError
        If the endpoint does not answer a first request, or goes away.
    """
    trace = trace or shipped_trace()
    seed = secrets.randbits(_SEED_BITS) if seed is None else seed
    pacing = pacing or Pacing()
    base_url = endpoint_base_url.rstrip("/").removesuffix("/v1")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        client = CompletionClient(
            session, base_url, model, timeout_seconds=request_timeout_seconds, clock=pacing.clock
        )
        template_tokens = await _template_tokens(client, base_url, text_of(1, seed))
        scaled = scale(trace, workload, context_length, seconds=seconds, template_tokens=template_tokens)
        open_loop = OpenLoop(
            client,
            PromptWriter(text_of, seed),
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


async def _template_tokens(client: CompletionClient, base_url: str, word: str) -> int:
    """Ask for one token: the endpoint must answer, and what it counts beside the word is the template."""
    outcome = await client.complete(word, 1, due_seconds=0.0)
    if outcome.failure is not None:
        detail = f" ({outcome.failure_detail})" if outcome.failure_detail else ""
        raise ReplayError(f"{base_url} did not answer a first request: {outcome.failure}{detail}")
    return max(0, outcome.usage.prompt_tokens - 1) if outcome.usage else 0


def _lateness_p99_ms(outcomes: Sequence[Outcome]) -> float:
    """Return the 99th percentile of how late requests were sent, in milliseconds."""
    late = [(outcome.sent_seconds - outcome.due_seconds) * _MILLISECONDS for outcome in outcomes]
    return percentile(late, 99) or 0.0
