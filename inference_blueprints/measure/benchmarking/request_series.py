"""The requests of a benchmark: their arrival times, and prompts of the wanted lengths."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inference_blueprints.measure.replay.scaled_trace import COMMON_PREFIX, PrefixBlock, ScaledRequest
from inference_blueprints.measure.simulation.offline_replay import RecordedRequest
from inference_blueprints.measure.tuning.replayed_workload import (
    Demand,
    StatedWorkload,
    busiest,
    recorded_workload,
)
from inference_blueprints.measure.tuning.traces import BLOCK_TOKENS, read_trace
from inference_blueprints.spec.types import Workload
from inference_contracts.errors import UserError


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
