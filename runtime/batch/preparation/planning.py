"""Sums over all segments, and whether the job fits its limits, its deadline and its budget."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

from batch.contracts.request import JobRequest
from batch.preparation.segment_report import SegmentReport, ShardEntry

_SECONDS_PER_HOUR = 3600
# Their results become one object, which S3 makes of as many parts; a map has as many children at once.
_MOST_SHARDS = 10_000


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a job will not run, in the words of a batch's ``errors``.

    Parameters
    ----------
    code
        A word for programs.
    message
        What was got, what is allowed, and what to do.
    line
        Line of the input, from 1, where it is one line's.
    """

    code: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A job, summed up; estimates, but for the lines.

    Parameters
    ----------
    lines, invalid, repeated
        Lines of all inputs, those that are not valid, and those whose custom_id another has.
    requests
        Lines that hold something; those that run are what is left without the invalid.
    shards
        How many shards it has.
    input_tokens, output_tokens
        Estimated tokens of prompts, and tokens that answers may have.
    hours
        Hours that its queue's workers need for it, if they have nothing else to do.
    usd
        What it costs, in dollars.
    problems
        Why it will not run; empty where it will.
    """

    lines: int
    invalid: int
    repeated: int
    requests: int
    shards: int
    input_tokens: int
    output_tokens: int
    hours: float
    usd: float
    problems: tuple[Problem, ...] = field(default_factory=tuple)

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read the document.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a document.
        """
        values = json.loads(text)
        return cls(**{**values, "problems": tuple(Problem(**each) for each in values["problems"])})


def first_lines(reports: Sequence[SegmentReport]) -> list[int]:
    """Return the lines of the same input before each segment.

    Parameters
    ----------
    reports
        Of all segments, in order.
    """
    before: list[int] = []
    for _, group in itertools.groupby(reports, key=lambda report: report.source):
        counts = [report.lines for report in group]
        before += itertools.accumulate(counts[:-1], initial=0)
    return before


def shards_by_size(reports: Sequence[SegmentReport]) -> list[ShardEntry]:
    """Return all shards, the largest first: what begins last is then small, and all end together."""
    shards = [shard for report in reports for shard in report.shards]
    return sorted(shards, key=lambda shard: (-shard.input_tokens - shard.output_tokens, shard.shard))


def plan(request: JobRequest, reports: Sequence[SegmentReport], *, repeated: int, now: float) -> Plan:
    """Sum a job up, and say everything that is wrong with it at once.

    Parameters
    ----------
    request
        The job.
    reports
        Of all its segments, in order.
    repeated
        Lines whose custom_id another line has.
    now
        Seconds since 1970.
    """
    shards = [shard for report in reports for shard in report.shards]
    asked = sum(shard.input_tokens for shard in shards)
    answered = sum(shard.output_tokens for shard in shards)
    capacity = request.capacity
    sums = Plan(
        lines=sum(report.lines for report in reports),
        invalid=sum(report.invalid for report in reports),
        repeated=repeated,
        requests=sum(shard.lines for shard in shards) + sum(report.invalid for report in reports),
        shards=len(shards),
        input_tokens=asked,
        output_tokens=answered,
        hours=(asked / capacity.input_tokens_per_second + answered / capacity.output_tokens_per_second)
        / _SECONDS_PER_HOUR,
        usd=capacity.usd(asked, answered),
    )
    problems = (*_unreadable(request, reports), *_problems(request, sums, now))
    return replace(sums, problems=problems)


def _unreadable(request: JobRequest, reports: Sequence[SegmentReport]) -> Iterator[Problem]:
    """Iterate over the inputs that were not read to their end: nobody knows what else they hold."""
    reasons = {(report.source, report.unreadable): None for report in reports if report.unreadable}
    for source, reason in reasons:
        each = request.inputs[source]
        yield Problem("unreadable_input", f"s3://{each.bucket}/{each.key}: {reason}")


def _problems(request: JobRequest, sums: Plan, now: float) -> Iterator[Problem]:
    """Iterate over why the job will not run."""
    if sums.lines == 0:
        yield Problem("empty_file", "the input has no line; a job needs one request at least")
    elif sums.shards == 0:
        yield Problem(
            "no_valid_line", f"none of the {sums.lines:,} lines is valid; the error file has the reasons"
        )
    elif sums.invalid and not request.skip_invalid:
        yield Problem(
            "invalid_lines",
            f"{sums.invalid:,} of {sums.lines:,} lines are not valid; mend them by the error file, or submit "
            "with skipInvalid to run the others",
        )
    if sums.lines > request.limits.lines:
        yield Problem(
            "too_many_lines",
            f"{sums.lines:,} lines; a job has {request.limits.lines:,} at most: submit several",
        )
    if sums.shards > _MOST_SHARDS:
        yield Problem(
            "too_large",
            f"{sums.input_tokens + sums.output_tokens:,} tokens make {sums.shards:,} shards; a job has "
            f"{_MOST_SHARDS:,} at most: submit several",
        )
    if sums.repeated:
        yield Problem(
            "duplicate_custom_id",
            f"{sums.repeated:,} lines have a custom_id that an earlier line has; the error file names them",
        )
    if sums.usd > request.budget_usd:
        yield Problem(
            "over_budget",
            f"about ${sums.usd:,.2f} for {sums.input_tokens:,} input and up to {sums.output_tokens:,} output "
            f"tokens; the job's budget is ${request.budget_usd:,.2f}: raise it, or limit max_tokens",
        )
    left = max(request.deadline - now, 0.0) / _SECONDS_PER_HOUR
    if sums.hours > left:
        deadline = datetime.fromtimestamp(request.deadline, UTC).strftime("%Y-%m-%d %H:%M UTC")
        yield Problem(
            "misses_deadline",
            f"about {sums.hours:,.1f} hours on the capacity of queue {request.queue!r}; {left:,.1f} are left "
            f"until {deadline}: set a later deadline, or use a queue with more capacity",
        )
