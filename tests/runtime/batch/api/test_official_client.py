"""The official OpenAI client, as it comes, against the API."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import pytest
from openai import (
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    NotFoundError,
    OpenAI,
    PermissionDeniedError,
    RateLimitError,
    omit,
)
from openai.types import Batch

from batch.api.api_request import ApiError
from batch.contracts.request import JobRequest
from batch.jobs import identifiers
from batch.jobs.file_table import FileRecord
from batch.jobs.job_table import RequestCounts, plain
from batch.jobs.settings import BatchPlatform
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.emulator import Emulator
from tests.runtime.batch.api.gateway import Gateway
from tests.runtime.conftest import Pauses

LINE = {
    "custom_id": "a",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {"model": "qwen3-8b", "messages": [{"role": "user", "content": "hi"}]},
}
INPUT = json.dumps(LINE).encode() + b"\n"
MIB = 2**20


def submit(client: OpenAI, metadata: dict[str, str] | None = None) -> Batch:
    file = client.files.create(file=("input.jsonl", INPUT), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata=omit if metadata is None else metadata,
    )


def test_a_file_becomes_a_job_that_runs_and_whose_output_is_read(
    client: OpenAI, platform: BatchPlatform, environment: dict[str, str]
) -> None:
    batch = submit(client, metadata={"run": "nightly", "priority": "40"})

    assert batch.status == "validating"
    assert batch.id.startswith("batch_")
    assert batch.expires_at is not None
    assert batch.expires_at - batch.created_at == 24 * 3600
    assert batch.metadata == {"run": "nightly", "priority": "40"}
    assert batch.model == "qwen3-8b"
    assert resources.executions(environment) == [
        {"name": f"{batch.id}-1", "status": "RUNNING", "input": {"job": batch.id, "attempt": 1}}
    ]
    stored = resources.read_object(JobKeys(batch.id).request)
    request = JobRequest.from_json(stored)
    assert (request.team, request.queue, request.deadline) == ("search", "nightly", batch.expires_at)
    assert resources.read_object(request.inputs[0].key) == INPUT

    now = int(time.time())
    platform.jobs.move(batch.id, "in_progress", before=["validating"], now=now)
    platform.jobs.move(batch.id, "finalizing", before=["in_progress"], now=now)
    output = FileRecord(
        id=identifiers.result_file(batch.id, "output"),
        team="search",
        filename=f"{batch.id}_output.jsonl",
        purpose="batch_output",
        size=3,
        bucket=resources.BUCKET,
        key=JobKeys(batch.id).output,
        created_at=now,
    )
    platform.storage.put(output.key, b"{}\n")
    platform.files.put(output)
    platform.jobs.move(
        batch.id,
        "completed",
        before=["finalizing"],
        now=now,
        changes={"counts": plain(RequestCounts(1, 1, 0)), "output_file_id": output.id, "cost_usd": 0.25},
    )

    done = client.batches.retrieve(batch.id)
    assert (done.status, done.completed_at) == ("completed", now)
    assert done.request_counts is not None
    assert (done.request_counts.total, done.request_counts.completed) == (1, 1)
    assert done.output_file_id is not None
    assert client.files.content(done.output_file_id).read() == b"{}\n"
    assert [file.id for file in client.files.list(purpose="batch_output")] == [output.id]


def test_content_is_read_from_s3_without_the_callers_token(client: OpenAI, emulator: Emulator) -> None:
    file = client.files.create(file=("input.jsonl", INPUT), purpose="batch")

    assert client.files.content(file.id).read() == INPUT

    assert [seen.authorization for seen in emulator.seen] == [None]


def test_files_are_listed_retrieved_and_deleted(client: OpenAI) -> None:
    files = [client.files.create(file=(f"{n}.jsonl", INPUT), purpose="batch") for n in range(5)]

    assert [file.filename for file in client.files.list(limit=2)] == [f"{n}.jsonl" for n in (4, 3, 2, 1, 0)]
    assert [file.id for file in client.files.list(order="asc")] == [file.id for file in files]
    assert client.files.retrieve(files[0].id).bytes == len(INPUT)
    assert client.files.delete(files[0].id).deleted is True
    with pytest.raises(NotFoundError):
        client.files.retrieve(files[0].id)
    with pytest.raises(NotFoundError):
        client.files.content(files[0].id)
    assert len(list(client.files.list())) == 4


@pytest.mark.parametrize("size", [100, 9 * MIB + 17])
def test_a_large_file_comes_in_parts(client: OpenAI, tmp_path: Path, size: int) -> None:
    content = (INPUT * (size // len(INPUT) + 1))[:size]
    path = tmp_path / "large.jsonl"
    path.write_bytes(content)

    upload = client.uploads.upload_file_chunked(
        file=path,
        mime_type="application/jsonl",
        purpose="batch",
        part_size=4 * MIB,
        md5=hashlib.md5(content).hexdigest(),  # noqa: S324 - the API's digest
    )

    assert upload.file is not None
    assert (upload.status, upload.file.bytes, upload.file.filename) == ("completed", size, "large.jsonl")
    assert client.files.content(upload.file.id).read() == content
    assert resources.list_keys("uploads/") == []


def test_a_file_above_four_mebibytes_is_refused_with_the_alternatives(client: OpenAI) -> None:
    with pytest.raises(APIStatusError, match=r"upload_file_chunked.*manifest") as refused:
        client.files.create(file=("large.jsonl", b"x" * (4 * MIB + 1)), purpose="batch")

    assert refused.value.status_code == 413


def test_jobs_are_listed_newest_first_page_by_page(client: OpenAI) -> None:
    batches = [submit(client) for _ in range(5)]

    first = client.batches.list(limit=2)
    assert ([each.id for each in first.data], first.has_more) == ([batches[4].id, batches[3].id], True)
    assert [each.id for each in client.batches.list(limit=2)] == [each.id for each in reversed(batches)]
    last = client.batches.list(after=batches[1].id)
    assert ([each.id for each in last.data], last.has_more) == ([batches[0].id], False)


def test_a_job_is_cancelled_once_and_for_all(
    client: OpenAI, platform: BatchPlatform, environment: dict[str, str]
) -> None:
    batch = submit(client)

    assert client.batches.cancel(batch.id).status == "cancelling"
    assert client.batches.cancel(batch.id).status == "cancelling"
    assert [each["status"] for each in resources.executions(environment)] == ["ABORTED"]
    platform.jobs.move(batch.id, "cancelled", before=["cancelling"], now=1)
    assert client.batches.cancel(batch.id).status == "cancelled"


def test_a_job_that_has_ended_is_not_cancelled(client: OpenAI, platform: BatchPlatform) -> None:
    batch = submit(client)
    platform.jobs.move(batch.id, "failed", before=["validating"], now=1)

    with pytest.raises(BadRequestError, match="Cannot cancel a batch with status 'failed'"):
        client.batches.cancel(batch.id)


def test_a_team_sees_nothing_of_another(
    client: OpenAI, client_of: Callable[[str], OpenAI], emulator: Emulator
) -> None:
    batch = submit(client)
    upload = client.uploads.create(bytes=1, filename="f", mime_type="text/plain", purpose="batch")
    other = client_of(resources.ADVERTS)

    assert list(other.batches.list()) == []
    assert list(other.files.list()) == []
    for attempt in (
        lambda: other.batches.retrieve(batch.id),
        lambda: other.batches.cancel(batch.id),
        lambda: other.files.retrieve(batch.input_file_id),
        lambda: other.files.content(batch.input_file_id),
        lambda: other.files.delete(batch.input_file_id),
        lambda: other.uploads.cancel(upload.id),
        lambda: other.uploads.complete(upload.id, part_ids=["part_1"]),
        lambda: other.uploads.parts.create(upload.id, data=b"x"),
        lambda: other.batches.list(after=batch.id),
        lambda: other.files.list(after=batch.input_file_id),
    ):
        with pytest.raises(NotFoundError):
            attempt()
    with pytest.raises(BadRequestError, match="there is no file"):
        other.batches.create(
            input_file_id=batch.input_file_id, endpoint="/v1/chat/completions", completion_window="24h"
        )
    assert emulator.seen == []


def test_a_request_whose_answer_was_lost_makes_one_job(
    client: OpenAI, gateway: Gateway, pauses: Pauses
) -> None:
    file = client.files.create(file=("input.jsonl", INPUT), purpose="batch")
    gateway.lose_answers = 1

    batch = client.with_options(max_retries=2).batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )

    assert len(pauses.seconds) == 1
    assert [each.id for each in client.batches.list()] == [batch.id]


def test_who_is_refused_gets_the_clients_own_error(
    client: OpenAI, client_of: Callable[[str], OpenAI]
) -> None:
    stranger, nobody = client_of(resources.NOBODY), client.with_options(api_key="none")
    with pytest.raises(AuthenticationError) as refused:
        nobody.batches.list()
    assert refused.value.code == "invalid_api_key"
    for asked in (stranger.batches.list, stranger.files.list):
        with pytest.raises(PermissionDeniedError) as forbidden:
            asked()
        assert (forbidden.value.code, forbidden.value.type) == ("no_team", "permission_error")


@pytest.mark.parametrize(
    ("status", "kind"), [(429, RateLimitError), (503, InternalServerError), (500, InternalServerError)]
)
def test_what_passes_is_asked_again_by_the_client_itself(
    client: OpenAI, gateway: Gateway, status: int, kind: type[APIStatusError], pauses: Pauses
) -> None:
    batch = submit(client)
    function, left = gateway.function, [0]

    def trouble(event: dict[str, object], context: object) -> dict[str, object]:
        if not left[0]:
            return function(event, context)
        left[0] -= 1
        body = ApiError(HTTPStatus(status), "try again").response().body
        return {"statusCode": status, "headers": {"retry-after-ms": "1"}, "body": body}

    gateway.function = trouble
    left[0] = 2
    assert client.with_options(max_retries=2).batches.retrieve(batch.id).id == batch.id
    assert pauses.seconds == [0.001, 0.001]
    left[0] = 1
    with pytest.raises(kind, match="try again"):
        client.batches.retrieve(batch.id)


def test_content_is_streamed(client: OpenAI, tmp_path: Path) -> None:
    content = b"".join(b'{"line": %d}\n' % each for each in range(100_000))
    file = client.files.create(file=("input.jsonl", content), purpose="batch")
    with client.files.with_streaming_response.content(file.id) as answer:
        answer.stream_to_file(tmp_path / "streamed.jsonl")
    assert (tmp_path / "streamed.jsonl").read_bytes() == content
    with client.files.with_streaming_response.content(file.id) as answer:
        assert sum(1 for _ in answer.iter_lines()) == 100_000


def test_the_same_request_twice_makes_two_jobs(client: OpenAI) -> None:
    file = client.files.create(file=("input.jsonl", INPUT), purpose="batch")

    def submitted() -> str:
        return client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        ).id

    assert submitted() != submitted()


def test_the_clients_own_option_for_a_key_is_not_sent(client: OpenAI) -> None:
    # What docs/batch.md says of it: a client that sends it makes this one red.
    file = client.files.create(file=("input.jsonl", INPUT), purpose="batch")
    body = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}

    made = [client.post("/batches", cast_to=Batch, body=body, options={"idempotency_key": "a"}) for _ in "ab"]

    assert made[0].id != made[1].id
