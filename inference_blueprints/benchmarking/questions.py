"""What is asked of an endpoint: requests with their times, and prompts of the wanted lengths as text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inference_blueprints.errors import UserError
from inference_blueprints.local.replay.scale import COMMON_PREFIX, PrefixBlock, ScaledRequest
from inference_blueprints.simulation.offline_replay import RecordedRequest
from inference_blueprints.spec.types import Workload
from inference_blueprints.tuning.traces import BLOCK_TOKENS, read_trace
from inference_blueprints.tuning.workload import Demand, StatedWorkload, busiest, recorded_workload


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is asked at the most.

    Parameters
    ----------
    seconds
        How long requests arrive.
    requests
        How many.
    context_length
        Longest prompt and answer together, in tokens; longer requests are left out.
    """

    seconds: float
    requests: int
    context_length: int


@dataclass(frozen=True, slots=True)
class Questions:
    """The requests of a benchmark.

    Parameters
    ----------
    demand
        The same, as the offline replay takes it.
    requests
        In the order of arrival, with prompts as blocks of tokens.
    trace
        Name of the trace; empty for the `workload` section.
    notes
        What was left out.
    """

    demand: Demand
    requests: tuple[ScaledRequest, ...]
    trace: str
    notes: tuple[str, ...]


def stated(workload: Workload, bounds: Bounds) -> Questions:
    """Return requests of the workload's mean lengths at random times, at its peak rate.

    Parameters
    ----------
    workload
        The blueprint's section.
    bounds
        How much is asked at the most.

    Raises
    ------
    UserError
        If no request arrives within the bounds.
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


def recorded(path: Path, bounds: Bounds) -> Questions:
    """Return the busiest part of a trace, as far as it is within the bounds.

    Parameters
    ----------
    path
        The trace, as `blueprints tune` reads it.
    bounds
        How much is asked at the most.

    Raises
    ------
    UserError
        If the trace cannot be read, or fewer than two of its requests are within the bounds.
    """
    trace = read_trace(path)
    part = [each for each in busiest(trace.requests) if each.arrival_seconds < bounds.seconds]
    fitting = [each for each in part if each.input_tokens + each.output_tokens <= bounds.context_length]
    chosen = fitting[: bounds.requests]
    if len({each.arrival_seconds for each in chosen}) < 2:  # noqa: PLR2004 - a rate needs two times
        raise UserError(
            f"{path}: {len(chosen)} requests of its busiest {bounds.seconds:g} s fit a context of "
            f"{bounds.context_length:,} tokens; two at different times are needed: raise --seconds, or the "
            "workload's lengths in the blueprint"
        )
    notes = [f"Of {len(trace.requests):,} recorded requests {len(chosen):,} were asked: the busiest."]
    if len(fitting) < len(part):
        notes.append(
            f"{len(part) - len(fitting)} of them were left out: longer than {bounds.context_length:,} tokens."
        )
    if trace.rounded:
        notes.append("Its times are rounded; requests of one time are spread evenly up to the next.")
    first = chosen[0].arrival_seconds
    chosen = [replace(each, arrival_seconds=each.arrival_seconds - first) for each in chosen]
    return Questions(
        recorded_workload(chosen, BLOCK_TOKENS), tuple(map(_scaled, chosen)), trace.name, tuple(notes)
    )


def in_words(
    requests: Sequence[ScaledRequest], tokens_a_word: float, template_tokens: int
) -> list[ScaledRequest]:
    """Return requests with blocks of as many words as give the wanted tokens.

    Parameters
    ----------
    requests
        With blocks of tokens.
    tokens_a_word
        Mean tokens of a word, as the endpoint counts them.
    template_tokens
        Tokens that the chat template adds; the last block is that much shorter.
    """
    return [
        _in_words(request, tokens_a_word, template_tokens, number) for number, request in enumerate(requests)
    ]


def _in_words(
    request: ScaledRequest, tokens_a_word: float, template_tokens: int, number: int
) -> ScaledRequest:
    """Round the ends of blocks and not their lengths, so that errors do not add up."""
    blocks, end_tokens, end_words = [], 0, 0
    total = max(1, request.input_tokens - template_tokens)
    for block in request.blocks:
        end_tokens = min(end_tokens + block.tokens, total)
        words = round(end_tokens / tokens_a_word) - end_words
        if words > 0:
            blocks.append(PrefixBlock(block.identity, words))
        end_words += max(0, words)
    return replace(request, blocks=tuple(blocks) or (PrefixBlock(COMMON_PREFIX - 1 - number, 1),))


def _scaled(request: RecordedRequest) -> ScaledRequest:
    """Cut a recorded prompt into its blocks, the last one shorter."""
    whole, blocks = request.input_tokens, []
    for identity in request.block_ids:
        blocks.append(PrefixBlock(identity, min(BLOCK_TOKENS, whole)))
        whole -= blocks[-1].tokens
    return ScaledRequest(request.arrival_seconds, request.input_tokens, request.output_tokens, tuple(blocks))
