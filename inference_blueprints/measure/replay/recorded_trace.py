"""The recorded requests that a replay starts from."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from inference_contracts.units import MILLISECONDS_PER_SECOND

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
