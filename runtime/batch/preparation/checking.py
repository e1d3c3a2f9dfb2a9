"""Checks one segment: its lines into shards, its bad lines into rows of the error file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from batch.contracts.keys import JobKeys
from batch.contracts.request import JobRequest
from batch.objects import Objects
from batch.preparation import error_rows
from batch.preparation.csv_rows import rows
from batch.preparation.custom_ids import digests
from batch.preparation.cutting import NumberedLine, cut_shards
from batch.preparation.line_reader import lines_that_begin_within
from batch.preparation.request_checks import BadLine, CheckedLine, check_request
from batch.preparation.row_checks import RowChecks
from batch.preparation.segment_report import SegmentReport, ShardEntry
from batch.preparation.segments import Segment
from batch.rendering import RenderingError

_Checked = tuple[int, CheckedLine | BadLine, str]


@dataclass(slots=True)
class _Findings:
    """What is found while the lines go by."""

    lines: int = 0
    valid: list[NumberedLine] = field(default_factory=list)
    ids: list[tuple[str, int]] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)


def check_segment(request: JobRequest, segment: Segment, objects: Objects) -> SegmentReport:
    """Check a segment and write everything that it becomes; doing it again writes the same.

    Parameters
    ----------
    request
        The job.
    segment
        The part of its input.
    objects
        Where to read and write.

    Raises
    ------
    InputChangedError
        If the input is not what it was.
    """
    findings = _Findings()
    try:
        for number, line, code in _checked_lines(request, segment, objects, findings):
            _sort_in(findings, number, line, code)
    except RenderingError as error:  # Of the template itself: no row of it can be made a request.
        findings = _Findings(lines=1)
        _sort_in(findings, 1, BadLine(None, (str(error),)), "template_error")
    keys = JobKeys(request.job)
    shards = tuple(_write_shards(keys, segment.number, findings.valid, objects))
    objects.write(
        keys.segment_ids(segment.number), digests(findings.ids), content_type="application/octet-stream"
    )
    objects.write(
        keys.segment_errors(segment.number), b"".join(findings.errors), content_type="application/jsonl"
    )
    report = SegmentReport(segment.number, segment.source, findings.lines, len(findings.errors), shards)
    objects.write(keys.segment(segment.number), report.to_json().encode())
    return report


def _checked_lines(
    request: JobRequest, segment: Segment, objects: Objects, findings: _Findings
) -> Iterator[_Checked]:
    """Iterate over the lines of a segment, each with its number, what it is, and a word for what is wrong."""
    source = request.inputs[segment.source]
    stream = objects.stream(source.bucket, source.key, start=max(segment.start - 1, 0), etag=segment.etag)
    if source.format == "csv":
        yield from _checked_rows(request, segment, stream, findings)
        return
    limit = request.limits.line_bytes
    check = _checker(request, segment)
    lines = lines_that_begin_within(stream, start=segment.start, end=segment.end, limit=limit)
    for number, line in enumerate(lines, start=1):
        findings.lines = number
        if line.size and line.content is None:
            reason = f"{line.size:,} bytes; a line has {limit:,} at most"
            yield number, BadLine(None, (reason,)), "line_too_long"
        elif line.content and not line.content.isspace():
            yield number, check(line.content, number), "invalid_line"


def _checked_rows(
    request: JobRequest, segment: Segment, stream: Iterable[bytes], findings: _Findings
) -> Iterator[_Checked]:
    """Iterate over the rows of comma-separated values, as `_checked_lines` does."""
    checks = RowChecks(request)
    for row in rows(stream, limit=request.limits.line_bytes):
        findings.lines = row.line
        if isinstance(row.content, BadLine):
            yield row.line, row.content, "invalid_line"
        else:
            yield row.line, checks.check(row.content, _place(segment, row.line)), "invalid_line"


def _checker(request: JobRequest, segment: Segment) -> Callable[[bytes, int], CheckedLine | BadLine]:
    """Return what checks a line of JSON: a request, or a row for the job's template."""
    if request.template is None:
        return lambda content, _: check_request(content, request)
    checks = RowChecks(request)
    return lambda content, number: checks.check_json(content, _place(segment, number))


def _place(segment: Segment, number: int) -> str:
    """Return a name for a row that has none; no other row of the job has it."""
    return f"row-{segment.number}-{number}"


def _sort_in(findings: _Findings, number: int, line: CheckedLine | BadLine, code: str) -> None:
    """Put a line with its like."""
    if isinstance(line, BadLine):
        findings.errors.append(_row(number, line, code))
    else:
        findings.valid.append(NumberedLine(number, line))
        findings.ids.append((line.custom_id, number))


def _row(number: int, line: BadLine, code: str) -> bytes:
    """Return a bad line as a row of the error file."""
    return error_rows.row(line=number, custom_id=line.custom_id, code=code, reasons=line.reasons)


def _write_shards(
    keys: JobKeys, segment: int, lines: list[NumberedLine], objects: Objects
) -> Iterator[ShardEntry]:
    """Write the shards of a segment, and iterate over what the list of shards says of them."""
    for shard in cut_shards(segment, lines):
        objects.write(keys.shard(shard.name).lines, shard.to_jsonl(), content_type="application/jsonl")
        yield ShardEntry(shard.name, len(shard.lines), shard.input_tokens, shard.output_tokens)
