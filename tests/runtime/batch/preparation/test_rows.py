"""Rows of a job with a template: each is rendered and measured, from JSON and from comma-separated values."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.contracts.request import Input, JobRequest, RequestTemplate
from batch.objects import Objects
from batch.preparation.checking import check_segment
from batch.preparation.input_text import UnreadableInputError, rows
from batch.preparation.line_checks import BadLine, CheckedLine
from batch.preparation.row_checks import RowChecks
from batch.preparation.segments import Segment
from inference_contracts.batch_configuration import Capacity, JobLimits
from inference_contracts.batch_keys import JobKeys
from inference_contracts.prompt_template import RenderingError
from tests.runtime.batch import resources

REQUEST = JobRequest(
    job="j1",
    team="search",
    queue="nightly",
    model="qwen",
    endpoint="/v1/chat/completions",
    inputs=(Input(resources.BUCKET, "in.csv", "csv"),),
    deadline=4e9,
    budget_usd=100.0,
    capacity=Capacity(1e6, 1e6, 1.0, 4.0),
    limits=JobLimits(request_tokens=500),
    data_prefixes=("s3://pictures/",),
    template=RequestTemplate("What is {{ name }}?", (), {"max_tokens": 7}),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


def with_images(request: JobRequest = REQUEST) -> JobRequest:
    return replace(request, template=RequestTemplate("What is {{ name }}?", ("photo",), {}))


def check(request: JobRequest, row: dict[str, Any], place: str = "a") -> CheckedLine | BadLine:
    with closing(RowChecks(request)) as checks:
        return checks.check(row, place)


def asked(line: dict[str, Any]) -> str:
    return str(line["body"]["messages"][0]["content"])


def test_a_row_is_measured_as_the_request_that_it_becomes() -> None:
    found = check(REQUEST, {"name": "a shoe"}, "row-0-1")
    assert isinstance(found, CheckedLine)
    assert (found.custom_id, found.input_tokens, found.output_tokens) == ("row-0-1", 4 + 4, 7)
    assert (found.body, found.images) == (
        {"model": "qwen", "max_tokens": 7, "messages": [{"role": "user", "content": "What is a shoe?"}]},
        (),
    )


def test_images_count() -> None:
    wide = replace(with_images(), limits=JobLimits())
    found = check(wide, {"name": "it", "photo": "s3://pictures/1.png"})
    assert isinstance(found, CheckedLine)
    assert found.input_tokens == 4 + 3 + wide.image_tokens
    assert found.images == ("s3://pictures/1.png",)
    assert found.body["messages"] == [{"role": "user", "content": "What is it?"}]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "template: 'name' is undefined"),
        ({"name": "x" * 5000}, "about 1,257 input tokens and up to 7 of output; the maximum is 500"),
        ({"name": "a", "custom_id": ""}, "custom_id: must be a string of 1 to 512 characters"),
        ({"name": "a", "custom_id": 3}, "custom_id: must be a string of 1 to 512 characters; got 3"),
    ],
)
def test_a_row_that_becomes_no_request_says_why(row: dict[str, Any], reason: str) -> None:
    found = check(REQUEST, row)
    assert isinstance(found, BadLine)
    assert any(each.startswith(reason) for each in found.reasons), found.reasons


@pytest.mark.parametrize(
    ("template", "endpoint", "reason"),
    [
        (
            RequestTemplate("x", (), {"max_tokens": "many", "stream": True}),
            "/v1/chat/completions",
            "template.parameters: stream: a batch is not streamed; leave it out; template.parameters: "
            'max_tokens: must be a whole number from 1 to 10,000,000; got "many"',
        ),
        (
            RequestTemplate("x", (), {"messages": []}),
            "/v1/chat/completions",
            "template.parameters: messages: is set by the template; leave it out",
        ),
        (
            RequestTemplate("x", ("photo",), {}),
            "/v1/completions",
            "template.imageFields: images are allowed only for /v1/chat/completions; "
            "got endpoint /v1/completions",
        ),
    ],
)
def test_a_template_that_makes_no_request_says_why(
    template: RequestTemplate, endpoint: str, reason: str
) -> None:
    with pytest.raises(RenderingError) as raised:
        RowChecks(replace(REQUEST, template=template, endpoint=endpoint))
    assert str(raised.value) == reason


@pytest.mark.parametrize("photo", [None, "", "https://example.org/1.png", "s3://other/1.png", 7])
def test_images_lie_below_the_teams_prefixes(photo: Any) -> None:
    found = check(with_images(), {"name": "it", "photo": photo})
    assert isinstance(found, BadLine)
    assert found.reasons[0].startswith("photo: ")


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=8), st.integers(1, 30))
def test_every_row_is_read_however_it_is_quoted_and_cut(values: list[list[str]], piece: int) -> None:
    written = io.StringIO(newline="")
    csv.writer(written).writerows([["a", "b"], *values])
    content = b"\xef\xbb\xbf" + written.getvalue().encode()

    def chunks() -> Iterator[bytes]:
        return (content[start : start + piece] for start in range(0, len(content), piece))

    assert [row.content for row in rows(chunks(), limit=1000)] == [{"a": a, "b": b} for a, b in values]


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"a,a\n1,2\n", 1, "the first line has two fields with the same name"),
        (b'a\n"x"y\n', 3, "is not CSV in UTF-8"),
        (b"a\n\xff\n", 1, "is not CSV in UTF-8"),
        (b"a\n" + b"x" * 2000, 2, "is not CSV in UTF-8: field larger than field limit (1000)"),
        (
            b"a\n" + b"x" * 9000,
            2,
            "is not CSV in UTF-8: a line has more than 4,000 characters",
        ),
    ],
)
def test_what_is_no_table_says_why(content: bytes, line: int, reason: str) -> None:
    with pytest.raises(UnreadableInputError) as raised:
        list(rows([content], limit=1000))
    assert str(raised.value).startswith(reason)
    assert abs(raised.value.line - line) <= 1


def test_a_row_with_too_few_values_is_one_bad_row() -> None:
    bad, good = rows([b"a,b\n1\n1,2\n"], limit=1000)
    assert bad.line == 2
    assert bad.content == BadLine(None, ("has 1 values; the first line has 2 fields",))
    assert good.content == {"a": "1", "b": "2"}


def checked(request: JobRequest, content: bytes) -> tuple[int, list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines of a segment, lines of its shards, rows of its error file."""
    [source] = request.inputs
    client = boto3.client("s3")
    etag = client.put_object(Bucket=source.bucket, Key=source.key, Body=content)["ETag"]
    segment = Segment(number=3, source=0, start=0, end=len(content), etag=etag)
    report = check_segment(request, segment, Objects(resources.BUCKET))
    keys = JobKeys(request.job)
    shards = [
        json.loads(line)
        for entry in report.shards
        for line in resources.read_object(keys.shard(entry.shard).lines).splitlines()
    ]
    errors = [json.loads(line) for line in resources.read_object(keys.segment_errors(3)).splitlines()]
    return report.lines, shards, errors


@pytest.mark.usefixtures("aws")
def test_comma_separated_values_become_shards() -> None:
    lines, shards, errors = checked(REQUEST, b'custom_id,name\na,shoe\n\n,hat\nc,"two\nlines"\n')
    assert [(each["custom_id"], asked(each)) for each in shards] == [
        ("a", "What is shoe?"),
        ("c", "What is two\nlines?"),
    ]
    assert [each["error"]["line"] for each in errors] == [4]
    assert lines == 6


@pytest.mark.usefixtures("aws")
def test_rows_in_json_become_shards_and_get_names() -> None:
    request = replace(REQUEST, inputs=(Input(resources.BUCKET, "in.jsonl"),))
    _, shards, errors = checked(request, b'{"name":"shoe"}\n[]\n{"nam":1}\n{"name":"hat","custom_id":"h"}')
    assert {each["custom_id"]: asked(each) for each in shards} == {
        "row-3-1": "What is shoe?",
        "h": "What is hat?",
    }
    assert [(each["error"]["line"], each["error"]["code"]) for each in errors] == [
        (2, "invalid_line"),
        (3, "invalid_line"),
    ]


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b'{"name":"shoe"}\n'), "is not text: it is compressed with gzip"),
        (b"PAR1\x15\x04\n", "is not text: it is Parquet, whose name must end in .parquet"),
    ],
    ids=["gzip", "parquet"],
)
def test_what_is_no_text_is_said_once(name: str, content: bytes, reason: str) -> None:
    source = Input(resources.BUCKET, name, "csv" if name.endswith("csv") else "jsonl")
    _, shards, [error] = checked(replace(REQUEST, inputs=(source,)), content)
    assert shards == []
    assert error["error"] == {"code": "unreadable_input", "message": reason, "line": 1}


@pytest.mark.usefixtures("aws")
def test_a_template_that_is_none_is_said_once() -> None:
    request = replace(REQUEST, template=RequestTemplate("{% for %}"))
    _, shards, errors = checked(request, b"name\na\nb\n")
    assert shards == []
    [error] = errors
    assert error["error"]["code"] == "template_error"
    assert error["error"]["message"].startswith("template: ")
