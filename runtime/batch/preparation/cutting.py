"""Cuts the valid lines of a segment into shards: by tokens, by prompt length, and by shared prefixes."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from batch.contracts.shard import ShardLine
from batch.preparation.line_checks import CheckedLine
from inference_contracts.batch_limits import LENGTH_CLASS_ENDS, MAX_SHARD_LINES, MAX_SHARD_TOKENS


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A valid line and its number."""

    number: int
    """Line of the segment, from 1."""
    line: CheckedLine


@dataclass(frozen=True, slots=True)
class Shard:
    """Lines for one worker."""

    name: str
    """Name within the job: segment, run, length class, and number."""
    lines: Sequence[ShardLine]
    input_tokens: int
    output_tokens: int
    """`input_tokens`, `output_tokens`: Estimated tokens of all lines."""

    def to_jsonl(self) -> bytes:
        return b"".join(line.to_json().encode("utf-8", "surrogatepass") + b"\n" for line in self.lines)


def cut_shards(segment: int, run: int, lines: Iterable[NumberedLine]) -> Iterator[Shard]:
    """Iterate over the shards of a run of lines.

    segment, run: Number of the segment, and number of the run within the segment.
    """
    classes: dict[int, list[NumberedLine]] = defaultdict(list)
    for each in lines:
        classes[bisect.bisect_left(LENGTH_CLASS_ENDS, each.line.input_tokens)].append(each)
    for length, members in sorted(classes.items()):
        members.sort(key=lambda each: (each.line.beginning, each.number))
        for place, group in enumerate(_groups(members)):
            yield _shard(f"{segment:06d}-{run:04d}-{length}-{place:03d}", group)


def _groups(members: Sequence[NumberedLine]) -> Iterator[list[NumberedLine]]:
    """Iterate over groups of at least one line, each up to the size of a shard."""
    group: list[NumberedLine] = []
    tokens = 0
    for each in members:
        size = each.line.input_tokens + each.line.output_tokens
        if group and (tokens + size > MAX_SHARD_TOKENS or len(group) == MAX_SHARD_LINES):
            yield group
            group, tokens = [], 0
        group.append(each)
        tokens += size
    if group:
        yield group


def _shard(name: str, group: Sequence[NumberedLine]) -> Shard:
    lines = [
        ShardLine(
            ordinal=ordinal,
            line=each.number,
            custom_id=each.line.custom_id,
            tokens=each.line.input_tokens,
            body=each.line.body,
            images=each.line.images,
        )
        for ordinal, each in enumerate(group)
    ]
    return Shard(
        name,
        lines,
        sum(each.line.input_tokens for each in group),
        sum(each.line.output_tokens for each in group),
    )
