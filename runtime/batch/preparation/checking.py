"""Checks one segment: valid lines become shards, invalid lines become rows of the error file.

The check holds some MiB of lines, then writes them as shards. So the memory does not depend on the number of
rows in a segment of CSV or Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from batch.contracts.request import JobRequest
from batch.objects import InputFaultError, Objects
from batch.preparation import segments
from batch.preparation.custom_ids import digests, merge_runs
from batch.preparation.cutting import NumberedLine, cut_shards
from batch.preparation.input_text import InputRow, UnreadableInputError, rows, text_of
from batch.preparation.line_checks import BadLine, CheckedLine, check_request
from batch.preparation.line_reader import lines_that_begin_within
from batch.preparation.parquet import ParquetReader
from batch.preparation.row_checks import CostlyTemplateError, RowChecks
from batch.preparation.segments import Segment, SegmentReport, ShardEntry
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import LINE_BUFFER_BYTES, LINE_OVERHEAD_BYTES
from inference_contracts.prompt_template import RenderingError
from inference_contracts.request_limits import RequestLimits

#: One function checks this many of the shortest rows in well under its fifteen minutes.
_MAX_CSV_BYTES = 512 * 2**20
#: Most invalid lines of a segment. Above this, the input as a whole is wrong, and a list of all lines would
#: take too long.
_MAX_INVALID = 1_000_000


@dataclass(frozen=True, slots=True)
class _Found:
    """A line that is not empty."""

    number: int
    """Line of the segment, from 1."""
    size: int
    line: CheckedLine | BadLine
    code: str = "invalid_line"
    """Stable code of the problem; empty if the line is valid."""


def check_segment(
    request: JobRequest, segment: Segment, objects: Objects, limits: RequestLimits | None = None
) -> SegmentReport:
    """Check a segment, and write its shards and error rows. A repeated call writes the same.

    segment: Segment of the input.
    objects: Objects to read and write.
    limits: Limits of the model's requests; None if its engine has none.
    Raises AwsBusyError if S3 cannot answer now.
    """
    keys = JobKeys(request.job)
    check = _Check(request, segment, objects, limits)
    objects.write_stream(keys.segment_errors(segment.number), check.error_rows())
    objects.write_stream(
        keys.segment_ids(segment.number), merge_runs(check.digests), content_type="application/octet-stream"
    )
    report = check.report()
    objects.write(keys.segment(segment.number), report.to_json().encode())
    return report


class _Check:
    """The check of one segment.

    request, segment: The job, and the segment of its input.
    limits: Limits of the model's requests.
    """

    def __init__(
        self, request: JobRequest, segment: Segment, objects: Objects, limits: RequestLimits | None
    ) -> None:
        self._limits = limits
        self._request = request
        self._segment = segment
        self._objects = objects
        self._source = request.inputs[segment.source]
        self._lines = 0
        self._invalid = 0
        self._unreadable = ""
        self._fault = ""
        self._held: list[NumberedLine] = []
        self._held_bytes = 0
        self._shards: list[ShardEntry] = []
        #: Digests of the custom_ids of each run.
        self.digests: list[bytes] = []

    def error_rows(self) -> Iterator[bytes]:
        """Check all lines, and iterate over the error rows of the invalid ones."""
        for found in self._found():
            if isinstance(found.line, BadLine):
                self._invalid += 1
                yield segments.row(
                    line=found.number,
                    custom_id=found.line.custom_id,
                    code=found.code,
                    reasons=found.line.reasons,
                )
                continue
            self._held.append(NumberedLine(found.number, found.line))
            self._held_bytes += found.size + LINE_OVERHEAD_BYTES
            if self._held_bytes >= LINE_BUFFER_BYTES:
                self._write_run()
        self._write_run()

    def report(self) -> SegmentReport:
        """Return the result of the check."""
        return SegmentReport(
            self._segment.number,
            self._segment.source,
            self._lines,
            self._invalid,
            tuple(self._shards),
            self._unreadable,
            self._fault,
        )

    def _write_run(self) -> None:
        """Write the held lines as shards."""
        keys = JobKeys(self._request.job)
        for shard in cut_shards(self._segment.number, len(self.digests), self._held):
            self._objects.write(
                keys.shard(shard.name).lines, shard.to_jsonl(), content_type="application/jsonl"
            )
            self._shards.append(
                ShardEntry(shard.name, len(shard.lines), shard.input_tokens, shard.output_tokens)
            )
        self.digests.append(digests((each.line.custom_id, each.number) for each in self._held))
        self._held, self._held_bytes = [], 0

    def _found(self) -> Iterator[_Found]:
        """Iterate over the lines of the segment that are not empty."""
        try:
            if not self._segment.etag:
                self._refuse_late_input()
            elif self._source.format == "jsonl":
                yield from self._until_too_many(self._found_in_lines())
            else:
                yield from self._until_too_many(self._found_in_rows())
        except RenderingError as error:  # The template itself is invalid, so no row can become a request.
            self._lines = 1
            yield _Found(1, 0, BadLine(None, (str(error),)), "template_error")
        except (
            CostlyTemplateError
        ) as error:  # The rows after this one are not known, so the job must not run.
            self._lines = max(self._lines, 1)
            self._unreadable = str(error)
            yield _Found(self._lines, 0, BadLine(None, (str(error),)), "template_error")
        except UnreadableInputError as error:
            self._lines = max(self._lines, error.line)
            self._unreadable = str(error)
            yield _Found(error.line, 0, BadLine(None, (str(error),)), "unreadable_input")
        except InputFaultError as error:  # No line of it is wrong: the job names the input.
            self._fault = str(error)

    def _refuse_late_input(self) -> None:
        """Raise why an input could not be cut into segments, or that it can be read only now."""
        bucket, key = self._source.bucket, self._source.key
        self._objects.size(bucket, key)
        raise InputFaultError(
            f"s3://{bucket}/{key} was not there when the job was submitted; submit it again"
        )

    def _until_too_many(self, lines: Iterator[_Found]) -> Iterator[_Found]:
        """Iterate over lines until too many are invalid."""
        for found in lines:
            if self._invalid == _MAX_INVALID:
                reason = f"has {_MAX_INVALID:,} invalid lines in one part of it; the rest was not read"
                raise UnreadableInputError(reason, line=found.number)
            yield found

    def _found_in_lines(self) -> Iterator[_Found]:
        """Check lines of JSON."""
        limit = self._request.limits.line_bytes
        segment = self._segment
        stream = self._stream(max(segment.start - 1, 0))
        lines = lines_that_begin_within(stream, start=segment.start, end=segment.end, limit=limit)
        with self._checker() as check:
            for number, line in enumerate(lines, start=1):
                self._lines = number
                if line.size and line.content is None:
                    reason = f"{line.size:,} bytes; a line may have at most {limit:,}"
                    yield _Found(number, 0, BadLine(None, (reason,)), "line_too_long")
                elif line.content and not line.content.isspace():
                    yield self._measured(number, line.size, check(line.content, number))

    def _found_in_rows(self) -> Iterator[_Found]:
        """Check rows of CSV or Parquet."""
        limit = self._request.limits.line_bytes
        with closing(RowChecks(self._request, self._limits)) as checks:
            for row in self._rows():
                self._lines = row.line
                if isinstance(row.content, BadLine):
                    yield _Found(row.line, 0, row.content)
                    continue
                size = _size(row.content)
                if size > limit:
                    reason = f"{size:,} bytes as JSON; a row may have at most {limit:,}"
                    yield _Found(row.line, 0, BadLine(None, (reason,)), "line_too_long")
                else:
                    line = checks.check(row.content, self._place(row.line))
                    yield self._measured(row.line, size, line)

    def _measured(self, number: int, size: int, line: CheckedLine | BadLine) -> _Found:
        """Return a checked line with its size. A template may make a long request of a short row."""
        if self._request.template is None or isinstance(line, BadLine):
            return _Found(number, size, line)
        limit = self._request.limits.line_bytes
        size = _size(line.body)
        if size > limit:
            reason = f"the request of this row has {size:,} bytes; it may have at most {limit:,}"
            return _Found(number, 0, BadLine(line.custom_id, (reason,)), "line_too_long")
        return _Found(number, size, line)

    def _rows(self) -> Iterator[InputRow]:
        if self._source.format == "csv":
            if self._segment.end > _MAX_CSV_BYTES:
                raise UnreadableInputError(
                    f"has {self._segment.end:,} bytes; a CSV file may have {_MAX_CSV_BYTES:,}, "
                    "because one function reads it: write several files, JSON Lines or Parquet"
                )
            yield from rows(self._stream(0), limit=self._request.limits.line_bytes)
            return
        bucket, key, segment = self._source.bucket, self._source.key, self._segment
        size, _ = self._objects.size(bucket, key)
        read = self._objects.part_of(bucket, key, etag=segment.etag)
        with closing(ParquetReader()) as reader:
            yield from reader.rows(read, size, (segment.start, segment.end))

    def _stream(self, start: int) -> Iterator[bytes]:
        source = self._source
        pieces = self._objects.stream(source.bucket, source.key, start=start, etag=self._segment.etag)
        return pieces if start else text_of(pieces)

    @contextmanager
    def _checker(self) -> Iterator[Callable[[bytes, int], CheckedLine | BadLine]]:
        """Yield the function that checks a line of JSON, as a request or as a row for the template."""
        if self._request.template is None:
            yield lambda content, _: check_request(content, self._request, self._limits)
            return
        with closing(RowChecks(self._request, self._limits)) as checks:
            yield lambda content, number: checks.check_json(content, self._place(number))

    def _place(self, number: int) -> str:
        """Return a name for a row without custom_id, unique within the job."""
        return f"row-{self._segment.number}-{number}"


def _size(row: Mapping[str, Any]) -> int:
    """Return the size of a row as JSON, in bytes."""
    return len(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))
