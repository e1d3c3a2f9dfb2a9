"""Valid lines of a segment into shards: by tokens, long and short apart, shared beginnings together."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from batch.contracts.shard import ShardLine
from batch.preparation.request_checks import CheckedLine

# Above each, a class of its own: a prompt of 100,000 tokens among short ones makes them wait for its prefill.
_LENGTH_CLASSES = (2_048, 16_384)
#: A shard's tokens, input and output: minutes of work, so that little is lost with a worker and the last
#: shards of a job end together.
SHARD_TOKENS = 8_000_000
#: A shard's lines, whatever they hold.
SHARD_LINES = 50_000


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A valid line at its place.

    Parameters
    ----------
    number
        Line of the segment, from 1.
    line
        The line.
    """

    number: int
    line: CheckedLine


@dataclass(frozen=True, slots=True)
class Shard:
    """Lines that one worker takes.

    Parameters
    ----------
    name
        Its name within the job: segment, run, length class, and place.
    lines
        Its lines.
    input_tokens, output_tokens
        Estimated tokens of all of them.
    """

    name: str
    lines: Sequence[ShardLine]
    input_tokens: int
    output_tokens: int

    def to_jsonl(self) -> bytes:
        """Return the shard's file."""
        return b"".join(line.to_json().encode("utf-8", "surrogatepass") + b"\n" for line in self.lines)


def cut_shards(segment: int, run: int, lines: Iterable[NumberedLine]) -> Iterator[Shard]:
    """Iterate over the shards of a run of a segment's lines.

    Parameters
    ----------
    segment, run
        The segment's number, and the run's in the segment.
    lines
        Its valid lines.
    """
    classes: dict[int, list[NumberedLine]] = defaultdict(list)
    for each in lines:
        classes[bisect.bisect_left(_LENGTH_CLASSES, each.line.input_tokens)].append(each)
    for length, members in sorted(classes.items()):
        members.sort(key=lambda each: (each.line.beginning, each.number))
        for place, group in enumerate(_groups(members)):
            yield _shard(f"{segment:06d}-{run:04d}-{length}-{place:03d}", group)


def _groups(members: Sequence[NumberedLine]) -> Iterator[list[NumberedLine]]:
    """Iterate over runs of lines, each as large as a shard may be, with one line at least."""
    group: list[NumberedLine] = []
    tokens = 0
    for each in members:
        size = each.line.input_tokens + each.line.output_tokens
        if group and (tokens + size > SHARD_TOKENS or len(group) == SHARD_LINES):
            yield group
            group, tokens = [], 0
        group.append(each)
        tokens += size
    if group:
        yield group


def _shard(name: str, group: Sequence[NumberedLine]) -> Shard:
    """Return the shard of a run of lines."""
    lines = [
        ShardLine(
            ordinal=ordinal,
            line=each.number,
            custom_id=each.line.custom_id,
            tokens=each.line.input_tokens,
            body=each.line.body,
            row=each.line.row,
        )
        for ordinal, each in enumerate(group)
    ]
    return Shard(
        name,
        lines,
        sum(each.line.input_tokens for each in group),
        sum(each.line.output_tokens for each in group),
    )
