"""Sums up all segments and checks the job against its limits and its budget."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from batch.contracts.request import JobDescription, JobRequest
from batch.objects import Objects
from batch.preparation import segments
from batch.preparation.custom_ids import repetitions
from batch.preparation.line_reader import read_lines
from batch.preparation.segments import SegmentReport, ShardEntry
from inference_contracts.batch_keys import JobKeys
from inference_contracts.json_record import JsonRecord
from inference_contracts.units import SECONDS_PER_HOUR

_CENT = 0.01
# S3 joins the shards' results from this many parts at most, and a map has this many children at most.
_MAX_SHARDS = 10_000


@dataclass(frozen=True, slots=True)
class PlanProblem(JsonRecord):
    """Reason why a job will not run, in the format of a batch's ``errors``."""

    code: str
    """Stable error code for programs."""
    message: str
    """The received value, the allowed values, and the action to take."""
    line: int | None = None
    """Line of the input, from 1, if the error concerns one line."""
    param: str | None = None
    """Field of the request, if the error concerns one field."""


@dataclass(frozen=True, slots=True)
class Plan(JsonRecord):
    """The totals of a job. All but the line counts are estimates."""

    lines: int
    """Lines of all inputs."""
    invalid: int
    """Invalid lines."""
    repeated: int
    """Lines with a repeated custom_id."""
    requests: int
    """Lines that are not empty. Those that run are the ones that are also valid."""
    shards: int
    input_tokens: int
    """Estimated tokens of prompts."""
    output_tokens: int
    """Most tokens of answers."""
    hours: float
    """Hours that the workers of its queue need, if they have no other job."""
    usd: float
    """Cost in dollars."""
    problems: tuple[PlanProblem, ...] = field(default_factory=tuple)
    """Reasons why the job will not run; empty if it will."""


def first_lines(reports: Sequence[SegmentReport]) -> list[int]:
    """Return, for each segment, the number of lines of the same input before it.

    reports: Reports of all segments, in order.
    """
    before: list[int] = []
    for _, group in itertools.groupby(reports, key=lambda report: report.source):
        counts = [report.lines for report in group]
        before += itertools.accumulate(counts[:-1], initial=0)
    return before


def shards_by_size(reports: Sequence[SegmentReport]) -> list[ShardEntry]:
    """Return all shards, largest first.

    The shards that start last are then small, so all end at about the same time.
    """
    shards = [shard for report in reports for shard in report.shards]
    return sorted(shards, key=lambda shard: (-shard.input_tokens - shard.output_tokens, shard.shard))


def plan(request: JobRequest, reports: Sequence[SegmentReport], *, repeated: int) -> Plan:
    """Sum up a job, and list all its problems.

    repeated: Lines with a repeated custom_id.
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
        hours=capacity.seconds(asked, answered) / SECONDS_PER_HOUR,
        usd=capacity.usd(asked, answered),
    )
    faults = tuple(_faults(reports))
    problems = (*faults, *_unreadable(request, reports), *_problems(request, sums, is_known=not faults))
    return replace(sums, problems=problems)


def _faults(reports: Sequence[SegmentReport]) -> Iterator[PlanProblem]:
    """Iterate over the inputs that S3 did not give."""
    reasons = {(report.source, report.fault): None for report in reports if report.fault}
    for source, reason in reasons:
        place = f"inputs[{source}]"
        yield PlanProblem("invalid_value", f"{place}: {reason}", param=place)


def _unreadable(request: JobRequest, reports: Sequence[SegmentReport]) -> Iterator[PlanProblem]:
    """Iterate over the inputs that could not be read to their end. Their remaining content is unknown."""
    reasons = {(report.source, report.unreadable): None for report in reports if report.unreadable}
    for source, reason in reasons:
        each = request.inputs[source]
        yield PlanProblem("unreadable_input", f"s3://{each.bucket}/{each.key}: {reason}")


def _problems(request: JobRequest, sums: Plan, *, is_known: bool) -> Iterator[PlanProblem]:
    """Iterate over the reasons why the job will not run.

    is_known: Whether every input was there to be read.
    """
    if sums.requests == 0 and is_known:
        found = f"has {sums.lines:,} lines, and all of them are blank" if sums.lines else "has no line"
        yield PlanProblem("empty_file", f"the input {found}; a job needs one request at least")
    elif sums.shards == 0 and is_known:
        yield PlanProblem(
            "no_valid_line", f"none of the {sums.requests:,} lines is valid; the error file has the reasons"
        )
    elif sums.invalid and not request.skip_invalid:
        yield PlanProblem(
            "invalid_lines",
            f"{sums.invalid:,} of {sums.lines:,} lines are not valid; correct them (see the error file), "
            "or submit with skip_invalid (in a manifest: skipInvalid) to run the other lines",
        )
    if sums.lines > request.limits.lines:
        yield PlanProblem(
            "too_many_lines",
            f"{sums.lines:,} lines; a job may have {request.limits.lines:,}: submit several jobs",
        )
    if sums.shards > _MAX_SHARDS:
        yield PlanProblem(
            "too_large",
            f"{sums.input_tokens + sums.output_tokens:,} tokens make {sums.shards:,} shards; a job may have "
            f"{_MAX_SHARDS:,}: submit several jobs",
        )
    if sums.repeated:
        yield PlanProblem(
            "duplicate_custom_id",
            f"{sums.repeated:,} lines have a custom_id that an earlier line has; the error file names them",
        )
    if sums.usd > request.budget_usd:
        yield PlanProblem(
            "over_budget",
            f"about {_dollars(sums.usd)} for {sums.input_tokens:,} input and up to {sums.output_tokens:,} "
            f"output tokens; the job's budget is {_dollars(request.budget_usd)}: raise it, or limit "
            "max_tokens",
        )


def _dollars(usd: float) -> str:
    """Return an amount with cents; below a cent, with six digits, so that it is not shown as nothing."""
    return f"${usd:.6f}" if 0 < usd < _CENT else f"${usd:,.2f}"


# Plans a job after all segments are checked: error file, list of shards, or reasons not to run.

_READS_AT_ONCE = 16
# Larger than any row of the error file.
_ROW_BYTES = 2**20


@dataclass(slots=True)
class _Count:
    """A counter that grows while a file is written."""

    value: int = 0


def plan_job(request: JobRequest, segment_count: int, objects: Objects) -> Plan:
    """Sum up the checks of all segments, and write the plan. A repeated call writes the same.

    objects: Objects to read and write.
    """
    keys = JobKeys(request.job)
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        contents = pool.map(lambda number: objects.read(keys.segment(number)), range(segment_count))
        reports = [SegmentReport.from_json(content) for content in contents]
    repeated = _Count()
    # A job with too many lines is refused for that reason.
    searched = reports if sum(report.lines for report in reports) <= request.limits.lines else ()
    objects.write_stream(keys.invalid, _invalid_rows(keys, reports, objects, repeated, searched))
    result = plan(request, reports, repeated=repeated.value)
    if not result.problems:
        shards = b"".join(shard.to_json().encode() + b"\n" for shard in shards_by_size(reports))
        objects.write(keys.shards, shards, content_type="application/jsonl")
        objects.write(keys.description, _description(request).to_json().encode())
    objects.write(keys.plan, result.to_json().encode())
    return result


def _invalid_rows(
    keys: JobKeys,
    reports: Sequence[SegmentReport],
    objects: Objects,
    repeated: _Count,
    searched: Sequence[SegmentReport],
) -> Iterator[bytes]:
    """Iterate over the error rows of all invalid lines, then of those with a repeated custom_id."""
    before = first_lines(reports)
    for report, lines_before in zip(reports, before, strict=True):
        if report.invalid:
            pieces = objects.pieces(keys.segment_errors(report.number))
            lines = read_lines(pieces, first_offset=0, limit=_ROW_BYTES)
            yield from segments.renumber_rows((line.content for line in lines if line.content), lines_before)
    for each in repetitions(_digests(keys, searched, objects)):
        repeated.value += 1
        first = each.first_line + before[each.first_segment]
        reason = f"its custom_id is that of line {first:,}; each must have its own"
        line = each.line + before[each.segment]
        yield segments.row(line=line, custom_id=None, code="duplicate_custom_id", reasons=(reason,))


def _digests(keys: JobKeys, reports: Sequence[SegmentReport], objects: Objects) -> list[list[bytes]]:
    """Return the digests of each segment's custom_ids, read whole: 20 bytes per line.

    One open stream per segment would exceed the 1,024 open files that a function may have
    (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
    """
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        contents = pool.map(objects.read, [keys.segment_ids(report.number) for report in reports])
        return [[content] for content in contents]


def _description(request: JobRequest) -> JobDescription:
    """Return the job description for workers."""
    return JobDescription(
        job=request.job,
        team=request.team,
        model=request.model,
        endpoint=request.endpoint,
        deadline=request.deadline,
        data_prefixes=request.data_prefixes,
    )
