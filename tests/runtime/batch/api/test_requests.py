"""Requests as they reach the function, right and wrong; every answer has the shape of the OpenAI API."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from openai.types import Batch

from batch.jobs.settings import BatchPlatform, read_platform
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import proxy_event
from tests.runtime.batch.api.requesting import JSON, Api

ENDPOINT = "/v1/chat/completions"


def batch_body(api: Api, **changes: object) -> dict[str, Any]:
    values = {"input_file_id": api.file(), "endpoint": ENDPOINT, "completion_window": "24h"}
    return {key: value for key, value in {**values, **changes}.items() if value is not None}


def test_a_batch_has_every_field_of_the_official_type(api: Api) -> None:
    body = api.post("/v1/batches", batch_body(api)).body

    assert set(Batch.model_fields) <= set(body)
    assert Batch.model_validate(body, strict=True).status == "validating"


@pytest.mark.parametrize(
    ("expiry", "seconds"),
    [
        (None, 30 * 86_400),
        ({"anchor": "created_at", "seconds": 7200}, 7200),
        ({"anchor": "created_at", "seconds": 2_592_000}, 30 * 86_400),
    ],
)
def test_a_batch_says_when_its_files_expire(
    api: Api, platform_in_process: BatchPlatform, expiry: object, seconds: int
) -> None:
    body = api.post("/v1/batches", batch_body(api, output_expires_after=expiry)).body
    job = platform_in_process.jobs.get(body["id"])
    assert job is not None
    assert job.output_seconds == seconds


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"input_file_id": None}, "input_file_id", "missing_required_parameter"),
        ({"input_file_id": "file-" + "0" * 32}, "input_file_id", "file_not_found"),
        ({"input_file_id": 7}, "input_file_id", "invalid_value"),
        ({"input_file_id": "../jobs"}, "input_file_id", "file_not_found"),
        ({"endpoint": "/v1/images/edits"}, "endpoint", "invalid_value"),
        ({"endpoint": None}, "endpoint", "missing_required_parameter"),
        ({"completion_window": "soon"}, "completion_window", "invalid_value"),
        ({"completion_window": "0h"}, "completion_window", "invalid_value"),
        # The queue promises a day: nobody would be told that the job expires long before.
        ({"completion_window": "99d"}, "completion_window", "invalid_value"),
        ({"completion_window": None}, "completion_window", "missing_required_parameter"),
        ({"metadata": []}, "metadata", "invalid_value"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata", "invalid_value"),
        ({"metadata": {"a": "x" * 513}}, "metadata", "invalid_value"),
        ({"metadata": {"x" * 65: "a"}}, "metadata", "invalid_value"),
        ({"metadata": {"": "a"}}, "metadata", "invalid_value"),
        ({"metadata": {"queue": "weekly"}}, "metadata.queue", "invalid_value"),
        ({"metadata": {"priority": "high"}}, "metadata.priority", "invalid_value"),
        ({"metadata": {"priority": "101"}}, "metadata.priority", "invalid_value"),
        ({"metadata": {"budget_usd": "1001"}}, "metadata.budget_usd", "invalid_value"),
        ({"metadata": {"budget_usd": "nan"}}, "metadata.budget_usd", "invalid_value"),
        # It would be stored and shown as 0.
        ({"metadata": {"budget_usd": "1e-7"}}, "metadata.budget_usd", "invalid_value"),
        ({"metadata": {"skip_invalid": "yes"}}, "metadata.skip_invalid", "invalid_value"),
        ({"stream": True}, "stream", "unknown_parameter"),
        (
            {"output_expires_after": {"anchor": "completed_at", "seconds": 3600}},
            "output_expires_after.anchor",
            "invalid_value",
        ),
        (
            {"output_expires_after": {"anchor": "created_at", "seconds": 3599}},
            "output_expires_after.seconds",
            "invalid_value",
        ),
        (
            {"output_expires_after": {"anchor": "created_at", "seconds": 2592001}},
            "output_expires_after.seconds",
            "invalid_value",
        ),
    ],
)
def test_a_wrong_batch_is_refused_with_its_field(
    api: Api, changes: dict[str, object], param: str, code: str
) -> None:
    answer = api.post("/v1/batches", batch_body(api, **changes))

    assert answer.status == 400
    assert (answer.error["param"], answer.error["code"]) == (param, code)
    assert answer.error["type"] == "invalid_request_error"
    assert api.get("/v1/batches").body["data"] == []


def test_everything_that_is_wrong_is_said_at_once(api: Api) -> None:
    message = api.post("/v1/batches", {"endpoint": "/v1/x", "stream": True}).error["message"]

    for field in ("endpoint", "input_file_id", "completion_window", "stream"):
        assert f"{field}: " in message


def test_an_answer_about_very_much_is_short(api: Api) -> None:
    answer = api.post("/v1/batches", {f"field-{number}": number for number in range(20_000)})

    assert answer.status == 400
    assert answer.error["message"].endswith("more")
    assert len(json.dumps(answer.body)) < 20_000


def test_metadata_say_where_a_job_waits_and_what_it_may_cost(api: Api) -> None:
    options = {"queue": "nightly", "priority": "55", "budget_usd": "2.5", "skip_invalid": "true", "mine": "x"}
    body = api.post("/v1/batches", batch_body(api, metadata=options, completion_window="6h")).body

    assert (body["queue"], body["priority"], body["budget_usd"]) == ("nightly", 55, 2.5)
    assert body["metadata"] == options
    assert body["expires_at"] - body["created_at"] == 6 * 3600


def test_the_window_of_openai_is_taken_in_a_queue_with_an_earlier_deadline(
    platform_in_process: BatchPlatform,
) -> None:
    """A refusal of the only window that OpenAI's clients send turns this red."""
    configuration = platform_in_process.configuration
    queues = tuple(replace(queue, deadline_hours=12) for queue in configuration.queues)
    api = Api(replace(platform_in_process, configuration=replace(configuration, queues=queues)))
    body = api.post("/v1/batches", batch_body(api)).body
    assert body["expires_at"] - body["created_at"] == 12 * 3600
    refused = api.post("/v1/batches", batch_body(api, completion_window="1d")).error["message"]
    assert "got 1d, must be at most 12h, the deadline of queue nightly, or 24h" in refused


@pytest.mark.parametrize("budget", ["1e-6", "0.1", "3.3333333333333333", "-0.0"])
def test_any_sum_can_be_stored(api: Api, budget: str) -> None:
    body = api.post("/v1/batches", batch_body(api, metadata={"budget_usd": budget})).body

    assert api.get(f"/v1/batches/{body['id']}").body["budget_usd"] == pytest.approx(float(budget), abs=1e-6)


@pytest.fixture
def api_with_queues(aws: dict[str, str], tmp_path: Path) -> Api:
    """Two queues of one model, and one of another."""
    (nightly,) = resources.CONFIGURATION["queues"]
    other = {"name": "other", "model": "other-model", "publicName": "Acme/Other-1.5"}
    several = {
        **resources.CONFIGURATION,
        "queues": [nightly, {**nightly, "name": "weekly"}, {**nightly, **other}],
    }
    file = resources.write_configuration(tmp_path, several)
    return Api(read_platform({**aws, "BATCH_CONFIGURATION": str(file)}))


@pytest.mark.parametrize(
    ("content", "queue"),
    [
        (b'{"body": {"model": "other-model"}}\nnot JSON', "other"),
        (b'{"body": {"model": "Acme/Other-1.5"}}', "other"),
        (b'{"body": {"model": ""}}', None),
        (b'{"body": {"model": "qwen3-8b"}}', None),
        (b'{"body": {"model": "unknown"}}', None),
        (b'{"body": {"model": ["other-model"]}}', None),
        (b'{"body": []}', None),
        (b"[" * 2**20, None),
        (b'{"body": {"model": "other-model", "prompt": "' + b"x" * 2**20 + b'"}}', None),
        (b"\xff", None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_of_several_queues_a_job_takes_the_only_one_of_its_model(
    api_with_queues: Api, content: bytes, queue: str | None
) -> None:
    api = api_with_queues
    file = api.post_form("/v1/files", {"purpose": "batch"}, content=content).body["id"]
    body = batch_body(api, input_file_id=file)

    answer = api.post("/v1/batches", body)
    named = api.post("/v1/batches", {**body, "metadata": {"queue": "weekly"}})

    boto3.client("s3").delete_object(Bucket=resources.BUCKET, Key=f"files/search/{file}")
    assert api.post("/v1/batches", body).error["param"] == "metadata.queue"
    if queue is None:
        assert (answer.status, answer.error["param"]) == (400, "metadata.queue")
        assert "nightly, weekly, other" in answer.error["message"]
    else:
        assert (answer.body["queue"], answer.body["model"]) == (queue, "other-model")
    assert named.body["queue"] == "weekly"


def test_an_idempotency_key_makes_one_job(api: Api) -> None:
    body = batch_body(api)
    key = {"idempotency-key": "run-7"}

    first, again = api.post("/v1/batches", body, key), api.post("/v1/batches", body, key)
    reused = api.post("/v1/batches", {**body, "metadata": {"a": "b"}}, key)

    assert first.body == again.body
    assert (reused.status, reused.error["code"]) == (422, "idempotency_key_reused")
    assert len(api.get("/v1/batches").body["data"]) == 1
    assert api.post("/v1/batches", body, {"Idempotency-Key": "x" * 256}).status == 400


def test_an_idempotency_key_is_its_teams_own(platform_in_process: BatchPlatform) -> None:
    search, adverts = Api(platform_in_process), Api(platform_in_process, resources.ADVERTS)
    key = {"Idempotency-Key": "run-7"}

    first = search.post("/v1/batches", batch_body(search), key)
    second = adverts.post("/v1/batches", batch_body(adverts), key)

    assert first.status == second.status == 200
    assert first.body["id"] != second.body["id"]


@pytest.mark.parametrize("limit", ["0", "-1", "101", "x", "1.5", "", "1e400"])
@pytest.mark.parametrize("path", ["/v1/batches"])
def test_a_wrong_limit_is_refused(api: Api, path: str, limit: str) -> None:
    assert api.get(path, limit=limit).error["param"] == "limit"


@pytest.mark.parametrize("path", ["/v1/batches", "/v1/files"])
def test_a_wrong_cursor_is_refused(api: Api, path: str) -> None:
    for after in ("x", "batch_" + "0" * 32, "file-" + "0" * 32, "once#x"):
        assert api.get(path, after=after).status == 404
    assert api.get(path, colour="red").error["code"] == "unknown_parameter"


def test_empty_lists_are_lists(api: Api) -> None:
    empty = {"object": "list", "data": list[str](), "first_id": None, "last_id": None, "has_more": False}

    assert api.get("/v1/batches").body == api.get("/v1/files").body == empty


@pytest.mark.parametrize(
    "identifier",
    ["x", "batch_", "file-" + "g" * 32, "batch_" + "0" * 32, "file-" + "0" * 32, "%2e%2e", "z" * 3000],
)
def test_what_is_not_there_is_not_found(api: Api, identifier: str) -> None:
    for method, path in (
        ("GET", f"/v1/batches/{identifier}"),
        ("POST", f"/v1/batches/{identifier}/cancel"),
        ("GET", f"/v1/files/{identifier}"),
        ("GET", f"/v1/files/{identifier}/content"),
        ("DELETE", f"/v1/files/{identifier}"),
        ("POST", f"/v1/uploads/{identifier}/cancel"),
    ):
        answer = api.send(proxy_event(method, path, headers=JSON))
        assert (answer.status, answer.error["code"]) == (404, "not_found"), path


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/v1/files"), ("GET", "/v1/models"), ("GET", "/"), ("DELETE", "/v1/batches/x")],
)
def test_an_unknown_address_is_not_found(api: Api, method: str, path: str) -> None:
    answer = api.send(proxy_event(method, path))

    assert (answer.status, answer.error["code"]) == (404, "unknown_url")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_of_another_kind_is_refused(api: Api, content_type: str) -> None:
    for path in ("/v1/files", "/v1/batches", "/v1/uploads"):
        event = proxy_event("POST", path, headers={"Content-Type": content_type} if content_type else None)
        answer = api.send({**event, "body": "{}"})
        assert (answer.status, answer.error["code"]) == (415, "unsupported_content_type")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "[" * 100_000,
        '{"a": NaN}',
        '{"metadata": {"a": "\\ud800"}}',
        "\ud800",
    ],
)
def test_a_body_that_is_no_object_is_refused(api: Api, body: str) -> None:
    answer = api.post("/v1/batches", body)

    assert (answer.status, answer.error["code"]) == (400, "invalid_json")


@pytest.mark.parametrize(
    ("fields", "file", "param"),
    [
        ({}, "file", "purpose"),
        ({"purpose": "fine-tune"}, "file", "purpose"),
        ({"purpose": "batch"}, "files", "file"),
        ({"purpose": "batch", "more": "x"}, "file", "more"),
        (
            {"purpose": "batch", "expires_after[seconds]": "60", "expires_after[anchor]": "created_at"},
            "file",
            "expires_after.seconds",
        ),
        ({"purpose": "batch", "expires_after": "soon"}, "file", "expires_after"),
    ],
)
def test_a_wrong_form_is_refused(api: Api, fields: dict[str, str], file: str, param: str) -> None:
    answer = api.post_form("/v1/files", fields, file=file)

    assert (answer.status, answer.error["param"]) == (400, param)


@pytest.mark.parametrize("filename", ["rows.parquet", "ROWS.CSV", "in.jsonl.gz"])
def test_what_is_no_file_of_lines_is_refused_by_its_name(api: Api, filename: str) -> None:
    announced = {"filename": filename, "bytes": 4, "mime_type": "application/jsonl", "purpose": "batch"}
    answers = {
        "file": api.post_form("/v1/files", {"purpose": "batch"}, filename=filename),
        "filename": api.post("/v1/uploads", announced),
    }
    for param, answer in answers.items():
        assert (answer.status, answer.error["param"]) == (400, param)
        assert answer.error["message"].startswith(f"{param}: {filename} is not a JSON Lines file")
    assert resources.list_keys("files/") == []


def test_an_empty_file_is_refused(api: Api) -> None:
    assert api.post_form("/v1/files", {"purpose": "batch"}, content=b"").error["code"] == "empty_file"


def test_a_file_stays_as_long_as_it_was_asked_for(api: Api) -> None:
    fields = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "7200"}
    body = api.post_form("/v1/files", fields).body

    assert body["expires_at"] - body["created_at"] == 7200


def test_a_callers_signature_is_as_good_as_a_token(platform_in_process: BatchPlatform) -> None:
    api = Api(platform_in_process, principal=None)
    event = proxy_event("GET", "/iam/v1/batches")
    event["requestContext"]["identity"]["userArn"] = resources.SEARCH

    assert api.send_as_it_is(event).body["data"] == []


def test_who_is_nobody_is_told_nothing(platform_in_process: BatchPlatform) -> None:
    unknown, stranger = Api(platform_in_process, None), Api(platform_in_process, resources.NOBODY)
    forged = proxy_event(
        "GET", "/v1/batches", headers={"Authorization": resources.SEARCH, "principal": "search"}
    )

    assert unknown.send(forged).error["type"] == "authentication_error"
    assert unknown.send(forged).status == 401
    assert stranger.get("/v1/batches").status == 403
    assert stranger.get("/v1/batches").error["code"] == "no_team"


def test_a_job_that_never_began_is_cancelled_without_an_execution(
    api: Api, platform_in_process: BatchPlatform, aws: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform_in_process.executions, "start", lambda _: None)
    job = api.post("/v1/batches", batch_body(api)).body["id"]

    assert api.post(f"/v1/batches/{job}/cancel", "").body["status"] == "cancelling"
    later = time.time() + 61
    monkeypatch.setattr("batch.api.batches.time.time", lambda: later)
    for _ in range(2):
        assert api.post(f"/v1/batches/{job}/cancel", "").body["status"] == "cancelled"
    assert resources.executions(aws) == []


def test_a_job_that_is_finalizing_is_not_cancelled(api: Api, platform_in_process: BatchPlatform) -> None:
    job = api.post("/v1/batches", batch_body(api)).body["id"]
    jobs = platform_in_process.jobs
    jobs.move(job, "in_progress", before=["validating"], now=1)
    jobs.move(job, "finalizing", before=["in_progress"], now=2)
    assert api.post(f"/v1/batches/{job}/cancel", "").error["code"] == "not_cancellable"
    jobs.move(job, "completed", before=["finalizing"], now=3)

    answer = api.post(f"/v1/batches/{job}/cancel", "")

    assert (answer.status, answer.error["message"]) == (400, "Cannot cancel a batch with status 'completed'.")
    assert api.get(f"/v1/batches/{job}").body["cancelling_at"] is None


def test_the_content_is_elsewhere_for_a_while(api: Api) -> None:
    answer = api.get(f"/v1/files/{api.file()}/content")

    assert (answer.status, answer.headers["cache-control"]) == (302, "no-store")
    assert answer.headers["location"].startswith(
        f"https://{resources.BUCKET}.s3.{resources.REGION}.amazonaws.com/"
    )
    assert "X-Amz-Expires=300" in answer.headers["location"]


@pytest.mark.parametrize(
    ("code", "status"), [("ThrottlingException", 503), ("SlowDown", 503), ("AccessDenied", 500)]
)
def test_a_failure_of_aws_is_the_platforms(
    api: Api, platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    failure = ClientError({"Error": {"Code": code, "Message": "arn:aws:secret"}}, "Query")

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(platform_in_process.jobs, "of_team", fail)
    answer = api.get("/v1/batches")

    assert (answer.status, answer.error["type"]) == (status, "server_error")
    assert "arn:" not in json.dumps(answer.body)
    assert "Traceback" not in json.dumps(answer.body)
