"""Manifests that are written to a bucket, and schedules."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from batch.contracts.request import Input, JobRequest
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.submission.handlers import Submissions, build
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources

INBOX = "inbox-of-the-platform"
KEY = "nightly/search/2026-11-21.manifest.json"
MANIFEST: dict[str, Any] = {"inputs": ["s3://search-data/prompts/a.jsonl"]}


@pytest.fixture
def submissions(platform_in_process: BatchPlatform) -> Submissions:
    where = {"LocationConstraint": resources.REGION}
    client = boto3.client("s3")
    client.create_bucket(Bucket=INBOX, CreateBucketConfiguration=where)
    client.put_bucket_versioning(Bucket=INBOX, VersioningConfiguration={"Status": "Enabled"})
    return build(platform_in_process)


def write(manifest: object, key: str = KEY) -> dict[str, Any]:
    """Write an object and return the event that S3 sends of it."""
    body = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    answer = boto3.client("s3").put_object(Bucket=INBOX, Key=key, Body=body)
    return {
        "detail-type": "Object Created",
        "source": "aws.s3",
        "detail": {
            "version": "0",
            "bucket": {"name": INBOX},
            "object": {
                "key": key,
                "size": len(body),
                "etag": answer["ETag"].strip('"'),
                "version-id": answer["VersionId"],
                "sequencer": "617f08299329d189",
            },
            "requester": "123456789012",
            "reason": "PutObject",
        },
    }


def jobs_of(platform: BatchPlatform, team: str = "search") -> list[Job]:
    return list(platform.jobs.of_team(team, after=None, limit=100).jobs)


def test_a_manifest_becomes_a_job_of_its_prefixs_team(
    submissions: Submissions, platform_in_process: BatchPlatform, aws: dict[str, str]
) -> None:
    manifest = {
        **MANIFEST,
        "queue": "nightly",
        "model": "qwen3-8b",
        "endpoint": "/v1/chat/completions",
        "priority": 50,
        "deadlineHours": 6,
        "budgetUsd": 12.5,
        "skipInvalid": True,
        "template": {"text": "Say {{ it }}", "imageFields": ["photo"], "parameters": {"max_tokens": 9}},
        "metadata": {"run": "1"},
    }
    job = submissions.of_object(write(manifest))

    assert job is not None
    assert (job.team, job.queue, job.model, job.source) == ("search", "nightly", "qwen3-8b", "object")
    assert (job.priority, job.budget_usd, job.completion_window) == (50, 12.5, "6h")
    assert job.expires_at - job.created_at == 6 * 3600
    assert job.inputs == (Input("search-data", "prompts/a.jsonl", "jsonl"),)
    assert [each["name"] for each in resources.executions(aws)] == [f"{job.id}-1"]
    request = JobRequest.from_json(resources.read_object(JobKeys(job.id).request))
    assert request.template is not None
    assert (request.template.text, request.template.image_fields) == ("Say {{ it }}", ("photo",))
    assert (request.skip_invalid, request.data_prefixes) == (True, ("s3://search-data/prompts/",))
    assert request.deadline == job.expires_at


def test_an_event_that_comes_again_makes_no_other_job(
    submissions: Submissions, platform_in_process: BatchPlatform, aws: dict[str, str]
) -> None:
    event = write(MANIFEST)

    first, again = submissions.of_object(event), submissions.of_object(event)

    assert first == again
    assert len(jobs_of(platform_in_process)) == len(resources.executions(aws)) == 1


def test_the_same_manifest_written_again_is_another_job(
    submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    submissions.of_object(write(MANIFEST))
    submissions.of_object(write(MANIFEST))

    assert len(jobs_of(platform_in_process)) == 2


def test_an_idempotency_key_makes_two_objects_one_job(
    submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    keyed = {**MANIFEST, "idempotencyKey": "2026-11-21"}
    first = submissions.of_object(write(keyed))
    again = submissions.of_object(write(keyed, key="nightly/search/copy.manifest.json"))
    other = submissions.of_object(write({**keyed, "priority": 99}))

    assert first == again
    assert other is not None
    assert other.state == "failed"
    assert [error.code for error in other.errors] == ["idempotency_key_reused"]


def test_a_submission_that_broke_off_is_finished_by_the_next(
    submissions: Submissions,
    platform_in_process: BatchPlatform,
    aws: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = write(MANIFEST)
    busy = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "StartExecution")

    def refuse(_: Job) -> None:
        raise busy

    with monkeypatch.context() as context:
        context.setattr(platform_in_process.executions, "start", refuse)
        with pytest.raises(ClientError):
            submissions.of_object(event)
    assert resources.executions(aws) == []

    job = submissions.of_object(event)

    assert job is not None
    assert jobs_of(platform_in_process) == [job]
    assert [each["name"] for each in resources.executions(aws)] == [f"{job.id}-1"]


def test_a_wrong_manifest_is_a_failed_job_with_every_reason(
    submissions: Submissions, platform_in_process: BatchPlatform, aws: dict[str, str]
) -> None:
    event = write(
        {
            "inputs": ["s3://search-data/secret/a.jsonl", "s3://search-data/prompts/a.orc", "a.jsonl"],
            "endpoint": "/v1/images",
            "queue": "weekly",
            "model": "gpt-6",
            "priority": 101,
            "deadlineHours": 48,
            "budgetUsd": -1,
            "skipInvalid": "perhaps",
            "template": {"texts": "x"},
            "metadata": {"a": 1},
            "deadline": 1,
        }
    )
    job = submissions.of_object(event)

    assert job is not None
    assert (job.state, job.team) == ("failed", "search")
    assert [error.param for error in job.errors] == [
        "template.text",
        "template.texts",
        "queue",
        "model",
        "inputs[0]",
        "inputs[1]",
        "inputs[2]",
        "endpoint",
        "priority",
        "deadlineHours",
        "budgetUsd",
        "skipInvalid",
        "metadata",
        "deadline",
    ]
    assert resources.executions(aws) == []
    assert submissions.of_object(event) == job
    assert jobs_of(platform_in_process) == [job]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_need_a_template(ending: str, submissions: Submissions, aws: dict[str, str]) -> None:
    inputs = ["s3://search-data/prompts/a.jsonl", f"s3://search-data/prompts/a.{ending}"]
    refused = submissions.of_object(write({"inputs": inputs}))
    assert refused is not None
    [error] = refused.errors
    assert (error.param, refused.state) == ("inputs[1]", "failed")
    assert error.message == f"inputs[1]: .{ending} holds rows, which need a template; got none"
    taken = submissions.of_object(write({"inputs": inputs, "template": {"text": "{{ name }}"}}))
    assert taken is not None
    assert taken.state == "validating"
    assert [each.format for each in taken.inputs] == ["jsonl", ending]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"null",
        b'{"inputs": []}',
        b'{"inputs": [1]}',
        b"[" * 100_000,
        b"x" * (2**18 + 1),
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_manifest_is_a_failed_job(
    content: bytes, submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    job = submissions.of_object(write(content))

    assert job is not None
    assert job.state == "failed"
    assert jobs_of(platform_in_process) == [job]
    assert list(platform_in_process.jobs.in_state("failed")) == []


def test_a_manifest_of_exactly_the_largest_size_is_read(submissions: Submissions) -> None:
    """The limit belongs to what is allowed: one byte more is refused above."""
    job = submissions.of_object(write(json.dumps(MANIFEST).encode().ljust(2**18)))
    assert job is not None
    assert job.state == "validating"


@pytest.mark.thorough
def test_as_much_as_a_manifest_may_hold_is_kept(
    submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    inputs = [f"s3://search-data/prompts/{number:04d}{'x' * 160}.jsonl" for number in range(1000)]
    whole = submissions.of_object(
        write({"inputs": inputs, "metadata": {str(n): "ä" * 512 for n in range(16)}})
    )
    wrong = submissions.of_object(write({"inputs": [each.replace("search", "secret") for each in inputs]}))

    assert whole is not None
    assert wrong is not None
    assert (whole.state, len(whole.inputs)) == ("validating", 1000)
    assert (wrong.state, len(wrong.errors)) == ("failed", 51)
    assert wrong.errors[-1].message == "and 950 more"
    assert jobs_of(platform_in_process) == [wrong, whole]


@pytest.mark.parametrize(
    "key",
    [
        "nightly/adverts",
        "manifest.json",
        "nightly/nobody/manifest.json",
        "weekly/search/manifest.json",
        "nightly//manifest.json",
        "/nightly/search/manifest.json",
        "nightly/search/data.json",
    ],
)
def test_an_object_of_no_team_is_no_job(
    key: str, submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    assert submissions.of_object(write(MANIFEST, key=key)) is None
    assert jobs_of(platform_in_process) == jobs_of(platform_in_process, "adverts") == []


def test_a_team_reads_only_below_its_own_prefixes(submissions: Submissions) -> None:
    job = submissions.of_object(write(MANIFEST, key="nightly/adverts/manifest.json"))

    assert job is not None
    assert (job.team, job.state) == ("adverts", "failed")
    assert "outside" in job.errors[0].message


def test_an_object_that_is_gone_is_no_job(
    submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    event = write(MANIFEST)
    version = event["detail"]["object"]["version-id"]
    boto3.client("s3").delete_object(Bucket=INBOX, Key=KEY, VersionId=version)

    assert submissions.of_object(event) is None
    assert jobs_of(platform_in_process) == []


def test_a_schedule_makes_one_job_a_time(
    submissions: Submissions, platform_in_process: BatchPlatform
) -> None:
    event = {
        "schedule": f"arn:aws:scheduler:{resources.REGION}:123456789012:schedule/default/nightly",
        "time": "2026-11-21T02:00:00Z",
        "queue": "nightly",
        "team": "search",
        "manifest": {"inputs": ["s3://search-data/prompts/{date}.jsonl"]},
    }
    first, again = submissions.of_schedule(event), submissions.of_schedule(event)
    next_day = submissions.of_schedule({**event, "time": "2026-11-22T02:00:00Z"})

    assert first == again
    assert (first.source, first.inputs[0].key) == ("schedule", "prompts/2026-11-21.jsonl")
    assert (next_day.source, next_day.inputs[0].key) == ("schedule", "prompts/2026-11-22.jsonl")
    assert jobs_of(platform_in_process) == [next_day, first]
    with pytest.raises(LookupError, match="weekly"):
        submissions.of_schedule({**event, "queue": "weekly"})
