"""Plans a job after all segments are checked: error file, list of shards, or reasons not to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from batch.contracts.job_description import JobDescription
from batch.contracts.request import JobRequest
from batch.objects import Objects
from batch.preparation import error_rows
from batch.preparation.custom_ids import repetitions
from batch.preparation.line_reader import read_lines
from batch.preparation.planning import Plan, first_lines, plan, shards_by_size
from batch.preparation.segment_report import SegmentReport
from inference_contracts.batch_keys import JobKeys

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
            yield from error_rows.renumber_rows(
                (line.content for line in lines if line.content), lines_before
            )
    for each in repetitions(_digests(keys, searched, objects)):
        repeated.value += 1
        first = each.first_line + before[each.first_segment]
        reason = f"its custom_id is that of line {first:,}; each must have its own"
        line = each.line + before[each.segment]
        yield error_rows.row(line=line, custom_id=None, code="duplicate_custom_id", reasons=(reason,))


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
