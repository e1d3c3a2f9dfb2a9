"""Runs a replay: sends one test request, then each request when it is due, and waits for the last."""

from __future__ import annotations

import math
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import aiohttp

from inference_blueprints.measure.completions.completion_client import (
    CompletionClient,
    CountingClient,
    RequestOutcome,
)
from inference_blueprints.measure.completions.image_client import ImageClient
from inference_blueprints.measure.replay.open_loop import OpenLoop, Pacing, ProgressCallback
from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import (
    ReplayError,
    ScaledRequest,
    ScaledTrace,
    Trace,
    scale,
    shipped_trace,
)
from inference_blueprints.measure.statistics import percentile
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.spec.types import Workload
from inference_contracts.records import dataclass
from inference_contracts.units import MILLISECONDS_PER_SECOND

# A replay that begins with few requests, rises to the peak and falls again.

#: Pairs of a share of the time, and the share of the trace's requests at it.
RampPoints = tuple[tuple[float, float], ...]
POINTS: RampPoints = ((0.0, 0.1), (0.15, 0.1), (0.4, 1.0), (0.55, 1.0), (0.75, 0.1), (1.0, 0.1))
_LOW = 0.4
#: Two equal ramps, which begin and end higher.
TWO_RAMPS: RampPoints = tuple(
    (start + time / 2, max(_LOW, share)) for start in (0.0, 0.5) for time, share in POINTS
)


def long_enough(trace: Trace, peak: float, seconds: float) -> Trace:
    """Return a trace, repeated if it has too few requests for a ramp.

    trace: Recorded requests.
    peak: Requests per second at the peak.
    seconds: How long they arrive.
    """
    return trace.repeated(math.ceil(seconds * peak / len(trace.requests)))


def apply_ramp(
    requests: Sequence[ScaledRequest], seconds: float, seed: int, points: RampPoints = POINTS
) -> tuple[ScaledRequest, ...]:
    """Leave out requests at random, so that their rate follows a ramp. The first one stays.

    requests: Requests at the peak rate.
    seed: Chooses the requests.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    return tuple(
        each
        for number, each in enumerate(requests)
        if number == 0 or chance.random() < share_at(each.arrival_seconds / seconds, points)
    )


def share_at(time: float, points: RampPoints) -> float:
    """Return the share of the peak rate at a share of the time."""
    for (begin, low), (end, high) in pairwise(points):
        if time <= end:
            return low + (high - low) * (time - begin) / (end - begin) if end > begin else high
    return points[-1][1]


# The result of a replay.


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A finished replay of one model."""

    model: str
    """Name under which the endpoint serves it."""
    trace: Trace
    """The recorded trace."""
    workload: Workload
    """The workload that it was scaled to."""
    scaled: ScaledTrace
    """The requests that were sent."""
    outcomes: tuple[RequestOutcome, ...]
    """One per request, in the order of sending."""
    template_tokens: int
    """Tokens that the chat template adds to a prompt, measured before the replay."""
    elapsed_seconds: float
    """Time from sending the first request to the end of the last."""
    client_cpu_share: float
    """Share of one processor that the client used. Above 0.8, the client adds to the latencies."""
    lateness_p99_ms: float
    """99th percentile of the delay between due time and sending, in milliseconds."""
    seed: int
    """Seed of the text of the prompts."""

    @property
    def answered(self) -> tuple[RequestOutcome, ...]:
        """The requests that were answered completely. Latencies are computed only from them."""
        return tuple(outcome for outcome in self.outcomes if outcome.failure is None)

    @property
    def failure_reasons(self) -> dict[str, int]:
        """Failed requests by reason, the most frequent first."""
        return dict(Counter(outcome.failure for outcome in self.outcomes if outcome.failure).most_common())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return reasons to doubt the figures, one sentence each."""
        found = []
        if self.client_cpu_share > BUSY_CLIENT_SHARE:
            found.append(
                f"the client used {self.client_cpu_share:.0%} of a processor: latencies include its delay"
            )
        if self.lateness_p99_ms > LATE_MS:
            found.append(
                f"1 % of the requests were sent at least {self.lateness_p99_ms / 1000:.1f} s late, because "
                "this machine was too busy: the figures are of other arrival times and slower programs"
            )
        without_usage = sum(outcome.usage is None for outcome in self.answered)
        if without_usage and self.workload.images is None:
            found.append(f"{without_usage} answers had no token counts and are not included in token figures")
        return tuple(found)


BUSY_CLIENT_SHARE = 0.8
LATE_MS = 100.0


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
