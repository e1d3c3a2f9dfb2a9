"""A recorded trace, and how it is scaled to a workload: peak rate, mean lengths and shared prefixes. Pure."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from inference_blueprints.spec.types import Workload
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass
from inference_contracts.units import MILLISECONDS_PER_SECOND

# The recorded requests that a replay starts from.

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One recorded request."""

    timestamp_seconds: float
    """Arrival time, from the start of the trace."""
    input_tokens: int
    output_tokens: int
    """`input_tokens`, `output_tokens`: Length of its prompt and of its answer."""
    block_ids: tuple[int, ...]
    """Its prompt in blocks of `Trace.block_tokens` tokens. The last may be shorter. Equal ids mean equal
    content."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded requests and where they come from."""

    name: str
    source: str
    licence: str
    cut: str
    """`name`, `source`, `licence`, `cut`: Its name, source, licence and the part that is used, for readers of
    the figures."""
    block_tokens: int
    """Tokens of a prefix block."""
    timestamp_step_seconds: float
    """Resolution to which the publisher rounded the arrival times."""
    requests: tuple[TraceRequest, ...]
    """In the order of arrival."""

    def arrivals_seconds(self) -> list[float]:
        """Return the arrival time of each request in seconds, from the first.

        Requests with the same rounded time are spread evenly over the step, in their order. Replayed as
        published, a dozen would arrive at the same instant every few seconds, which does not happen in
        reality.
        """
        step = self.timestamp_step_seconds
        steps = [round(request.timestamp_seconds / step) for request in self.requests]
        together = {number: steps.count(number) for number in set(steps)}
        seen: dict[int, int] = {}
        arrivals = []
        for number in steps:
            position = seen.get(number, 0)
            seen[number] = position + 1
            arrivals.append((number + position / together[number]) * step)
        return [arrival - arrivals[0] for arrival in arrivals]

    def repeated(self, times: int) -> Trace:
        """Return the trace several times in a row.

        times: How often. Each time, prompts are new: none of their blocks is one of an earlier time.
        """
        if times == 1:
            return self
        steps = round(self.requests[-1].timestamp_seconds / self.timestamp_step_seconds) + 1
        lasting = steps * self.timestamp_step_seconds
        blocks = max(block for request in self.requests for block in request.block_ids) + 1
        requests = tuple(
            replace(
                request,
                timestamp_seconds=request.timestamp_seconds + time * lasting,
                block_ids=tuple(block + time * blocks for block in request.block_ids),
            )
            for time in range(times)
            for request in self.requests
        )
        return replace(self, cut=f"{self.cut}, {times} times in a row with new prompts", requests=requests)


@cache
def shipped_trace() -> Trace:
    """Return the excerpt in this library.

    Returns: The first minutes of Mooncake's conversation trace, cut by ``scripts/record_trace_excerpt.py``.
    """
    description = json.loads((_DATA / "mooncake_conversation.json").read_text(encoding="utf-8"))
    with gzip.open(_DATA / "mooncake_conversation.jsonl.gz", "rt", encoding="utf-8") as lines:
        requests = tuple(_request(line) for line in lines)
    return Trace(
        name=description["name"],
        source=description["source"],
        licence=description["licence"],
        cut=description["cut"],
        block_tokens=description["blockTokens"],
        timestamp_step_seconds=description["timestampStepSeconds"],
        requests=requests,
    )


def _request(line: str) -> TraceRequest:
    """Read one record. Its timestamp is in milliseconds."""
    record = json.loads(line)
    return TraceRequest(
        timestamp_seconds=record["timestamp"] / MILLISECONDS_PER_SECOND,
        input_tokens=record["input_length"],
        output_tokens=record["output_length"],
        block_ids=tuple(record["hash_ids"]),
    )


#: Length of the window with the peak rate. A blueprint states the rate of the busiest minute.
PEAK_WINDOW_SECONDS = 60.0
#: Block at the start of every prompt if the workload shares more than the trace does.
COMMON_PREFIX = -1
_HALVINGS = 100


class ReplayError(UserError):
    """A replay that cannot start or finish. The text is one line with the reason."""


@dataclass(frozen=True, slots=True)
class PrefixBlock:
    """A run of prompt tokens. Equal identities give equal text, up to the shorter length."""

    identity: int
    """The trace's block id, or `COMMON_PREFIX`."""
    tokens: int
    """Its length, 1 or more."""


@dataclass(frozen=True, slots=True)
class ScaledRequest:
    """One request to send."""

    arrival_seconds: float
    """Send time, from the start of the replay."""
    input_tokens: int
    """Prompt tokens as the engine counts them, including the chat template."""
    output_tokens: int
    """Number of tokens to request."""
    blocks: tuple[PrefixBlock, ...]
    """The prompt's text. It has `input_tokens` minus the tokens of the chat template."""


@dataclass(frozen=True, slots=True)
class ScalingFactors:
    """How the replayed requests differ from the recorded ones."""

    time: float
    """Replayed seconds per recorded second. Above 1, the trace is slowed down."""
    input: float
    output: float
    """`input`, `output`: Replayed tokens per recorded token."""
    block_tokens: float
    """Mean tokens of a prefix block, after scaling like the prompts."""
    common_prefix_tokens: int
    """Tokens added before every prompt to reach the workload's shared prefix ratio. 0 if none are needed."""
    clipped_inputs: int
    clipped_outputs: int
    """`clipped_inputs`, `clipped_outputs`: Requests that were cut to fit the context. The others are
    lengthened to keep the mean."""


@dataclass(frozen=True, slots=True)
class ScaledTrace:
    """The requests of a replay, and how they were scaled."""

    requests: tuple[ScaledRequest, ...]
    """In the order of arrival."""
    factors: ScalingFactors
    peak_window_seconds: float
    peak_requests_per_second: float
    """`peak_window_seconds`, `peak_requests_per_second`: Rate of requests in the busiest window of this
    length."""
    recorded_seconds: float
    """Length of the replayed part of the trace."""

    @property
    def mean_input_tokens(self) -> float:
        """Mean prompt length, in tokens."""
        return sum(request.input_tokens for request in self.requests) / len(self.requests)

    @property
    def mean_output_tokens(self) -> float:
        """Mean requested answer length, in tokens."""
        return sum(request.output_tokens for request in self.requests) / len(self.requests)


def scale(
    trace: Trace, workload: Workload, context_length: int, *, seconds: float, template_tokens: int = 0
) -> ScaledTrace:
    """Scale the start of a trace to a workload.

    Arrival times are multiplied by one factor, so that the busiest window of `PEAK_WINDOW_SECONDS` (or less,
    if the replay is shorter) has the stated peak rate. Prompt and answer lengths are each multiplied by one
    factor, so that their means are as stated. Prefix blocks are scaled like the prompts. Requests that exceed
    the context are cut, and the others are lengthened to keep the mean, as far as possible.

    workload: The target rate, lengths and sharing.
    context_length: Maximum length of prompt and answer together, in tokens.
    seconds: Length of the replay. It is shorter if the trace has too few requests.
    template_tokens: Tokens that the chat template adds to each prompt.
    Returns: At least one request.
    Raises ReplayError if the context has no room for a prompt and an answer.
    """
    room = context_length - template_tokens
    if room < 2:  # noqa: PLR2004 - one token of prompt, one of answer
        raise ReplayError(
            f"a context of {context_length} tokens has no room for a request besides the "
            f"{template_tokens} tokens of the chat template; raise the model's context length"
        )
    arrivals, time_factor, window = _scaled_arrivals(trace, workload.peak_requests_per_second, seconds)
    recorded = trace.requests[: len(arrivals)]
    mean_text = max(1, workload.input_tokens - template_tokens)
    common = _common_prefix_tokens(recorded, trace.block_tokens, mean_text, workload.shared_prefix_ratio)

    output_limit = min(room - 1, max(room - mean_text, room // 2))
    outputs = _Lengths.to_mean(
        [request.output_tokens for request in recorded],
        workload.output_tokens,
        [output_limit] * len(recorded),
    )
    texts = _Lengths.to_mean(
        [request.input_tokens for request in recorded],
        mean_text,
        [room - output for output in outputs.tokens],
        offset=common,
    )
    block_tokens = trace.block_tokens * texts.factor
    requests = tuple(
        ScaledRequest(
            arrival, text + template_tokens, output, _blocks(request.block_ids, text, common, block_tokens)
        )
        for arrival, text, output, request in zip(
            arrivals, texts.tokens, outputs.tokens, recorded, strict=True
        )
    )
    factors = ScalingFactors(
        time=time_factor,
        input=texts.factor,
        output=outputs.factor,
        block_tokens=block_tokens,
        common_prefix_tokens=common,
        clipped_inputs=texts.clipped,
        clipped_outputs=outputs.clipped,
    )
    return ScaledTrace(
        requests=requests,
        factors=factors,
        peak_window_seconds=window,
        peak_requests_per_second=workload.peak_requests_per_second,
        recorded_seconds=seconds_of(arrivals) / time_factor,
    )


def seconds_of(arrivals: Sequence[float]) -> float:
    """Return the time from the first arrival to the last, in seconds."""
    return arrivals[-1] - arrivals[0]


def _scaled_arrivals(trace: Trace, peak: float, seconds: float) -> tuple[list[float], float, float]:
    """Return the arrivals before `seconds`, the factor on time, and the window of the peak rate."""
    recorded = trace.arrivals_seconds()
    at_most = max(1, len(recorded) - 1)
    in_window = min(at_most, max(1, math.floor(peak * min(PEAK_WINDOW_SECONDS, seconds) + 1e-9)))
    window = in_window / peak
    if len(recorded) == 1:
        return recorded, 1.0, window
    # A half-open window has at most `in_window` requests if no request arrives sooner than `window` after
    # the request that is `in_window` positions earlier. Each further request may only tighten the factor.
    factor = 0.0
    for later in range(in_window, len(recorded)):
        factor = max(factor, window / (recorded[later] - recorded[later - in_window]))
        if recorded[later] * factor >= seconds:
            break
    scaled = [arrival * factor for arrival in recorded]
    return [arrival for arrival in scaled if arrival < seconds], factor, window


def _common_prefix_tokens(
    recorded: Sequence[TraceRequest], block_tokens: int, mean_text: int, shared_ratio: float
) -> int:
    """Return how many tokens all prompts must share for `shared_ratio` of all tokens to be shared."""
    users = Counter(identity for request in recorded for identity in set(request.block_ids))
    shared = sum(
        min(block_tokens, request.input_tokens - position * block_tokens)
        for request in recorded
        for position, identity in enumerate(request.block_ids)
        if users[identity] > 1
    )
    own_ratio = shared / sum(request.input_tokens for request in recorded)
    if shared_ratio <= own_ratio:
        return 0
    return min(mean_text - 1, round(mean_text * (shared_ratio - own_ratio) / (1 - own_ratio)))


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Lengths multiplied by one factor and limited to between 1 and a maximum."""

    tokens: list[int]
    factor: float
    clipped: int

    @classmethod
    def to_mean(
        cls, recorded: Sequence[int], mean: int, limits: Sequence[int], *, offset: int = 0
    ) -> _Lengths:
        """Find the factor that gives `offset + factor * recorded`, within its bounds, the mean."""

        def lengths(factor: float) -> list[float]:
            return [
                min(limit, max(offset + 1, offset + factor * length))
                for length, limit in zip(recorded, limits, strict=True)
            ]

        low, high = 0.0, max(limit / length for length, limit in zip(recorded, limits, strict=True))
        for _ in range(_HALVINGS):  # the mean grows with the factor
            middle = (low + high) / 2
            low, high = (middle, high) if sum(lengths(middle)) <= mean * len(recorded) else (low, middle)
        clipped = sum(
            offset + low * length > limit + 0.5 for length, limit in zip(recorded, limits, strict=True)
        )
        return cls([round(length) for length in lengths(low)], low, clipped)


def _blocks(
    identities: Sequence[int], text_tokens: int, common_tokens: int, block_tokens: float
) -> tuple[PrefixBlock, ...]:
    """Cut a text into its blocks.

    A block's ends depend only on its position, and every id has one position. So an id has the same length
    everywhere.
    """
    common = min(common_tokens, text_tokens)
    own = text_tokens - common
    ends = [min(own, round(block_tokens * position)) for position in range(1, len(identities))] + [own]
    starts = [0, *ends[:-1]]
    own_blocks = [
        PrefixBlock(identity, end - start)
        for identity, start, end in zip(identities, starts, ends, strict=True)
        if end > start
    ]
    return (PrefixBlock(COMMON_PREFIX, common), *own_blocks) if common else tuple(own_blocks)
