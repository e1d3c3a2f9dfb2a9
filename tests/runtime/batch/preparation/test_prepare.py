"""From an input in S3 to shards and an error file, over moto, by the functions of the state machine."""

from __future__ import annotations

import copy
import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

import inference_catalog as catalog
from batch.contracts.request import Input, JobRequest, RequestTemplate
from batch.objects import Objects
from batch.preparation import checking, handlers, segments
from batch.s3_errors import AwsBusyError
from inference_contracts.batch_configuration import Capacity, JobLimits
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import OBJECTS_PER_SEGMENT
from tests.runtime.batch.resources import CONFIGURATION, write_configuration

KEYS = JobKeys("j1")
REQUEST = JobRequest(
    job="j1",
    team="ads",
    queue="catalog",
    model="qwen",
    endpoint="/v1/chat/completions",
    inputs=(Input("inputs", "in.jsonl"),),
    deadline=4e9,
    budget_usd=1000.0,
    capacity=Capacity(1e6, 1e6, 1.0, 4.0),
    limits=JobLimits(line_bytes=10_000),
)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.setenv("BATCH_BUCKET", "batch")
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1_000)
    document = copy.deepcopy(CONFIGURATION)
    document["queues"][0] |= {"model": "qwen", "requestLimits": catalog.request_limits("vllm").as_record()}
    monkeypatch.setenv("BATCH_CONFIGURATION", str(write_configuration(tmp_path, document)))
    with mock_aws():
        client = boto3.client("s3")
        for bucket in ("batch", "inputs"):
            client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        handlers._objects.cache_clear()
        handlers._configuration.cache_clear()
        yield client
        handlers._objects.cache_clear()
        handlers._configuration.cache_clear()


def line(number: int, content: str = "hello") -> bytes:
    body = {"model": "qwen", "messages": [{"role": "user", "content": content}], "max_tokens": 10}
    return json.dumps(
        {"custom_id": f"id-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
    ).encode()


def read(s3: Any, key: str) -> bytes:
    content: bytes = s3.get_object(Bucket="batch", Key=key)["Body"].read()
    return content


def rows(s3: Any, key: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in read(s3, key).splitlines()]


def prepare(s3: Any, content: bytes, request: JobRequest = REQUEST) -> dict[str, Any]:
    s3.put_object(Bucket="inputs", Key="in.jsonl", Body=content)
    s3.put_object(Bucket="batch", Key=KEYS.request, Body=request.to_json().encode())
    cut = handlers.segment({"job": "j1"}, None)
    for segment in rows(s3, cut["key"]):
        handlers.check({"job": "j1", "segment": segment}, None)
    return handlers.plan({"job": "j1", "segments": cut["segments"]}, None)


def problems(s3: Any) -> dict[str, str]:
    return {each["code"]: each["message"] for each in json.loads(read(s3, KEYS.plan))["problems"]}


def test_every_line_is_in_one_shard_whatever_its_segment(s3: Any) -> None:
    chance = random.Random(5)  # noqa: S311 - no secret
    content = b"\n".join(line(number, "x" * chance.randrange(1, 3000)) for number in range(60))
    planned = prepare(s3, content)
    assert planned["accepted"], problems(s3)
    entries = rows(s3, planned["key"])
    assert len(entries) == planned["shards"] > 10
    found: Counter[str] = Counter()
    for entry in entries:
        shard = rows(s3, KEYS.shard(entry["shard"]).lines)
        assert len(shard) == entry["lines"]
        found.update(each["custom_id"] for each in shard)
    assert found == Counter(f"id-{number}" for number in range(60))
    sizes = [entry["input_tokens"] + entry["output_tokens"] for entry in entries]
    assert sizes == sorted(sizes, reverse=True)
    assert read(s3, KEYS.invalid) == b""


def test_every_bad_line_is_named_by_its_number_in_the_whole_input(s3: Any) -> None:
    lines = [line(number) for number in range(60)]
    lines[17] = b"{oops"
    lines[33] = line(33, "y" * 20_000)
    lines[41] = line(3)
    lines[50] = b"   "
    planned = prepare(s3, b"\r\n".join(lines) + b"\r\n")
    assert not planned["accepted"]
    errors = rows(s3, KEYS.invalid)
    assert [(each["error"]["line"], each["error"]["code"]) for each in errors] == [
        (18, "invalid_line"),
        (34, "line_too_long"),
        (42, "duplicate_custom_id"),
    ]
    assert errors[2]["error"]["message"] == "its custom_id is that of line 4; each must have its own"
    assert set(problems(s3)) == {"invalid_lines", "duplicate_custom_id"}


def test_a_segment_leaves_the_objects_that_quotas_are_computed_with(s3: Any) -> None:
    bad = b"no json"
    content = b"\n".join(bad if number % 10 == 0 else line(number) for number in range(60))
    prepare(s3, content)
    segments = len(rows(s3, KEYS.segments))
    assert segments > 1
    listed = s3.list_objects_v2(Bucket="batch", Prefix=f"{KEYS.prefix}segments/")["Contents"]
    assert len(listed) == segments * OBJECTS_PER_SEGMENT


def test_custom_ids_are_compared_with_no_connection_for_each_segment(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    plain = Objects.pieces

    def pieces(objects: Objects, key: str) -> Iterator[bytes]:
        opened.append(key)
        return plain(objects, key)

    monkeypatch.setattr(Objects, "pieces", pieces)
    prepare(s3, b"\n".join(line(number % 40) for number in range(42)))
    assert problems(s3).keys() == {"duplicate_custom_id"}
    assert [key for key in opened if key.endswith(".ids")] == []


def test_custom_ids_of_a_job_of_too_many_lines_are_not_read(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Objects.read

    def refuse_ids(objects: Objects, key: str) -> bytes:
        assert not key.endswith(".ids")
        return read(objects, key)

    monkeypatch.setattr(Objects, "read", refuse_ids)
    request = replace(REQUEST, limits=JobLimits(line_bytes=10_000, lines=41))
    prepare(s3, b"\n".join(line(number % 40) for number in range(42)), request)
    assert problems(s3).keys() == {"too_many_lines"}


def test_bad_lines_may_be_left_out(s3: Any) -> None:
    content = b"\n".join([line(1), b"{", line(2)])
    planned = prepare(s3, content, replace(REQUEST, skip_invalid=True))
    assert planned["accepted"]
    assert len(rows(s3, KEYS.invalid)) == 1


@pytest.mark.parametrize("template", [None, RequestTemplate("{{ text }}")])
def test_a_line_that_would_end_the_engine_is_refused_at_its_place(
    s3: Any, template: RequestTemplate | None
) -> None:
    """Red if a request reaches the workers beyond a bound at which vLLM's GPU worker raises."""
    body = json.loads(line(2))["body"] | {"allowed_token_ids": list(range(1025))}
    content = json.dumps({**json.loads(line(2)), "body": body}).encode()
    if template:
        template = replace(template, parameters={"allowed_token_ids": list(range(1025))})
        content = b'{"text": "x"}'
    request = replace(REQUEST, template=template, limits=JobLimits(line_bytes=100_000))
    assert not prepare(s3, content if template else b"\n".join([line(1), content]), request)["accepted"]
    [row] = rows(s3, KEYS.invalid)
    assert "allowed_token_ids: got 1,025 entries; the maximum is 1,024 entries" in row["error"]["message"]
    assert (row["error"]["line"], row["custom_id"]) == ((1, None) if template else (2, "id-2"))


def test_lines_are_counted_anew_in_each_input(s3: Any) -> None:
    s3.put_object(Bucket="inputs", Key="second.jsonl", Body=b"\n".join([line(100), b"nothing"]))
    request = replace(REQUEST, inputs=(Input("inputs", "in.jsonl"), Input("inputs", "second.jsonl")))
    prepare(s3, b"\n".join(line(number) for number in range(30)), request)
    assert [each["error"]["line"] for each in rows(s3, KEYS.invalid)] == [2]


@pytest.mark.parametrize(
    ("content", "changes", "code", "message"),
    [
        (b"", {}, "empty_file", "the input has no line; a job needs one request at least"),
        (b"\n \n\r\n", {}, "empty_file", "the input has 3 lines, and all of them are blank"),
        (b"{\n{\n\n", {}, "no_valid_line", "none of the 2 lines is valid; the error file has the reasons"),
        (
            line(1),
            {"limits": JobLimits(lines=0)},
            "too_many_lines",
            "1 lines; a job may have 0: submit several jobs",
        ),
        (
            line(1),
            {"budget_usd": 0.00001},
            "over_budget",
            "about $0.000046 for 6 input and up to 10 output tokens; the job's budget is $0.000010: raise it",
        ),
    ],
)
def test_a_job_that_will_not_run_says_why(
    s3: Any, content: bytes, changes: dict[str, Any], code: str, message: str
) -> None:
    planned = prepare(s3, content, replace(REQUEST, **changes))
    assert not planned["accepted"]
    assert message in problems(s3)[code]
    with pytest.raises(s3.exceptions.NoSuchKey):
        read(s3, KEYS.shards)


def test_a_job_with_two_problems_says_both(s3: Any) -> None:
    request = replace(
        REQUEST, capacity=Capacity(0.001, 0.001, 1e6, 1e6), budget_usd=1.0, limits=JobLimits(lines=0)
    )
    prepare(s3, line(1), request)
    assert set(problems(s3)) == {"over_budget", "too_many_lines"}


def test_more_bad_lines_than_anybody_reads_end_the_input(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_MAX_INVALID", 5)
    prepare(s3, b"x\n" * 400, replace(REQUEST, skip_invalid=True))
    rows_of_parts = [each["error"]["line"] for each in rows(s3, KEYS.invalid)]
    assert rows_of_parts[:6] == [1, 2, 3, 4, 5, 6]
    reason = "has 5 invalid lines in one part of it; the rest was not read"
    assert problems(s3)["unreadable_input"] == f"s3://inputs/in.jsonl: {reason}"


def test_comma_separated_values_have_a_most(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_MAX_CSV_BYTES", 100)
    request = replace(
        REQUEST, inputs=(Input("inputs", "in.jsonl", "csv"),), template=RequestTemplate("{{ name }}")
    )
    prepare(s3, b"name\n" + b"x\n" * 40, request)
    assert problems(s3) == {}
    prepare(s3, b"name\n" + b"x\n" * 50, request)
    assert "has 105 bytes; a CSV file may have 100" in problems(s3)["unreadable_input"]


def test_preparing_again_writes_the_same(s3: Any) -> None:
    content = b"\n".join(line(number) for number in range(50))

    def everything() -> dict[str, bytes]:
        listed = s3.list_objects_v2(Bucket="batch")["Contents"]
        return {each["Key"]: read(s3, each["Key"]) for each in listed}

    prepare(s3, content)
    once = everything()
    prepare(s3, content)
    assert everything() == once


def test_an_input_that_changes_after_it_was_cut_is_refused(s3: Any) -> None:
    s3.put_object(Bucket="inputs", Key="in.jsonl", Body=line(1))
    s3.put_object(Bucket="batch", Key=KEYS.request, Body=REQUEST.to_json().encode())
    [segment] = rows(s3, handlers.segment({"job": "j1"}, None)["key"])
    s3.upload_fileobj(io.BytesIO(line(2)), "inputs", "in.jsonl")
    handlers.check({"job": "j1", "segment": segment}, None)
    assert not handlers.plan({"job": "j1", "segments": 1}, None)["accepted"]
    assert problems(s3) == {
        "invalid_value": "inputs[0]: s3://inputs/in.jsonl was changed after the job was submitted; "
        "submit it again"
    }


class RefusedInputs:
    """S3 as it answers for the inputs of a team. Each answer is given once, the last one for ever."""

    def __init__(self, client: Any, *answers: tuple[str, int]) -> None:
        self._answers = list(answers)
        self._get = client.get_object
        client.get_object = self.get_object
        self.asked = 0

    def get_object(self, **request: Any) -> Any:
        if request["Bucket"] != "inputs":
            return self._get(**request)
        self.asked += 1
        code, status = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not code:
            return self._get(**request)
        error = {"Code": code, "Message": "said S3"}
        raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject")


def prepare_refused(s3: Any, monkeypatch: pytest.MonkeyPatch, *answers: tuple[str, int]) -> dict[str, str]:
    """Prepare a job of two inputs that S3 does not give, and return its problems."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    RefusedInputs(handlers._objects()._client, *answers)
    request = replace(REQUEST, inputs=(Input("inputs", "in.jsonl"), Input("inputs", "b.parquet", "parquet")))
    planned = prepare(s3, line(1), request)
    assert not planned["accepted"]
    found = json.loads(read(s3, KEYS.plan))["problems"]
    assert [each["param"] for each in found] == ["inputs[0]", "inputs[1]"]
    assert {each["code"] for each in found} == {"invalid_value"}
    return {each["param"]: each["message"] for each in found}


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("NoSuchKey", 404, "does not exist; write the object first, then submit again (NoSuchKey)"),
        ("InvalidObjectState", 403, "is archived; restore it"),
        ("KMS.DisabledException", 400, "has a KMS key that is disabled; enable the key"),
        ("AccessDenied", 403, "may not be read by the platform (AccessDenied: said S3)"),
    ],
)
def test_an_input_that_s3_does_not_give_is_named_at_its_place(
    s3: Any, monkeypatch: pytest.MonkeyPatch, code: str, status: int, reason: str
) -> None:
    """Red if the function fails: then the job has `internal_error` and a stack trace as its reason."""
    found = prepare_refused(s3, monkeypatch, (code, status))
    assert found["inputs[0]"].startswith(f"inputs[0]: s3://inputs/in.jsonl {reason}")
    assert found["inputs[1]"].startswith("inputs[1]: s3://inputs/b.parquet ")


def test_a_denial_says_that_the_object_may_be_missing(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if a missing object of a bucket that may not be listed reads like a permission fault only."""
    message = prepare_refused(s3, monkeypatch, ("AccessDenied", 403))["inputs[0]"]
    assert "kms:Decrypt" in message
    assert "S3 gives the same answer for an object that does not exist" in message


def test_a_denial_that_passes_is_waited_for(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if a policy that takes effect some seconds late fails the job."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    refused = RefusedInputs(handlers._objects()._client, *[("AccessDenied", 403)] * 2, ("", 200))
    assert prepare(s3, line(1))["accepted"]
    assert refused.asked == 4


def test_a_busy_s3_is_left_to_the_state_machine(s3: Any) -> None:
    """Red if `SlowDown` fails the job, or counts as a fault of the input."""
    RefusedInputs(handlers._objects()._client, ("SlowDown", 503))
    with pytest.raises(AwsBusyError, match=r"s3://inputs/in.jsonl.*SlowDown"):
        prepare(s3, line(1))


def test_an_input_that_comes_while_the_job_is_checked_is_refused(s3: Any) -> None:
    """Red if the check reads a file of which nobody knows whether it is complete."""
    s3.put_object(Bucket="batch", Key=KEYS.request, Body=REQUEST.to_json().encode())
    [segment] = rows(s3, handlers.segment({"job": "j1"}, None)["key"])
    s3.put_object(Bucket="inputs", Key="in.jsonl", Body=line(1))
    handlers.check({"job": "j1", "segment": segment}, None)
    handlers.plan({"job": "j1", "segments": 1}, None)
    assert "was not there when the job was submitted" in problems(s3)["invalid_value"]
