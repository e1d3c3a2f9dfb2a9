"""Plans a job whose segments are all checked: one error file, one list of shards, or why it will not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from batch.contracts.description import JobDescription
from batch.contracts.keys import JobKeys
from batch.contracts.request import JobRequest
from batch.objects import Objects
from batch.preparation import error_rows
from batch.preparation.custom_ids import repetitions
from batch.preparation.line_reader import read_lines
from batch.preparation.planning import Plan, first_lines, plan, shards_by_size
from batch.preparation.segment_report import SegmentReport

_READS_AT_ONCE = 16
# Above what a row of the error file ever has.
_ROW_BYTES = 2**20


@dataclass(slots=True)
class _Count:
    """A figure that grows while a file is written."""

    value: int = 0


def plan_job(request: JobRequest, segment_count: int, objects: Objects, *, now: float) -> Plan:
    """Sum up what checking found, and write what comes of it; doing it again writes the same.

    Parameters
    ----------
    request
        The job.
    segment_count
        How many segments it was cut into.
    objects
        Where to read and write.
    now
        Seconds since 1970.
    """
    keys = JobKeys(request.job)
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        contents = pool.map(lambda number: objects.read(keys.segment(number)), range(segment_count))
        reports = [SegmentReport.from_json(content) for content in contents]
    repeated = _Count()
    # What has too many lines is refused for that.
    searched = reports if sum(report.lines for report in reports) <= request.limits.lines else ()
    objects.write_stream(keys.invalid, _invalid_rows(keys, reports, objects, repeated, searched))
    result = plan(request, reports, repeated=repeated.value, now=now)
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
    """Iterate over the rows of all bad lines, then of those whose custom_id is taken."""
    before = first_lines(reports)
    for report, lines_before in zip(reports, before, strict=True):
        if report.invalid:
            pieces = objects.pieces(keys.segment_errors(report.number))
            lines = read_lines(pieces, first_offset=0, limit=_ROW_BYTES)
            yield from error_rows.moved((line.content for line in lines if line.content), lines_before)
    for each in repetitions(_digests(keys, searched, objects)):
        repeated.value += 1
        first = each.first_line + before[each.first_segment]
        reason = f"its custom_id is that of line {first:,}; each must have its own"
        line = each.line + before[each.segment]
        yield error_rows.row(line=line, custom_id=None, code="duplicate_custom_id", reasons=(reason,))


def _digests(keys: JobKeys, reports: Sequence[SegmentReport], objects: Objects) -> list[list[bytes]]:
    """Return what each segment says of its custom_ids, whole: 20 bytes a line.

    A connection for each at once would be more files than the 1,024 that a function may have open
    (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
    """
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        contents = pool.map(objects.read, [keys.segment_ids(report.number) for report in reports])
        return [[content] for content in contents]


def _description(request: JobRequest) -> JobDescription:
    """Return what workers need to know of a job."""
    return JobDescription(
        job=request.job,
        team=request.team,
        model=request.model,
        endpoint=request.endpoint,
        deadline=request.deadline,
        data_prefixes=request.data_prefixes,
        template=request.template,
    )
