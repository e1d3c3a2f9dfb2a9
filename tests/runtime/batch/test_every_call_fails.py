"""Whatever call to AWS a function is killed after, or AWS refuses: called again, it leaves what it leaves
undisturbed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from batch.completion import handlers as completion
from batch.contracts.request import Input, JobDescription
from batch.contracts.shard import ShardDone, Usage
from batch.jobs.job_table import Job
from batch.jobs.record_table import Table
from batch.jobs.settings import BatchPlatform, read_platform
from batch.objects import Objects
from batch.preparation import handlers as preparation
from batch.preparation import segments
from batch.preparation.planning import Plan, PlanProblem
from batch.s3_errors import AwsBusyError, AwsDeniedError
from batch.scheduling import handlers as scheduling
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.submission import handlers as submission
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.every_call import Call, Stage
from tests.runtime.batch.job_records import HOUR, NOW, make_job

pytestmark = pytest.mark.faults

Environment = dict[str, str]
#: Makes what a function finds, and returns the call of it.
Preparation = Callable[[Environment], Callable[[], Any]]

MANIFEST = {"inputs": ["s3://search-data/prompts/a.jsonl"]}


def line(number: int, words: int = 1) -> bytes:
    body = {"model": "qwen3-8b", "messages": [{"role": "user", "content": "word " * words}]}
    values = {"custom_id": f"line-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(values).encode() + b"\n"


INPUT = b"".join([line(0), b"no JSON\n", line(1, 4000), line(2), line(3), line(2)])


def submitted(environment: Environment) -> JobKeys:
    """A job whose input is cut into several segments."""
    boto3.client("s3").put_object(Bucket=resources.BUCKET, Key="files/search/f", Body=INPUT)
    platform = read_platform(environment)
    job = make_job(platform, inputs=(Input(resources.BUCKET, "files/search/f"),))
    keys = JobKeys(job.id)
    boto3.client("s3").delete_object(Bucket=resources.BUCKET, Key=keys.shards)
    return keys


def segment(environment: Environment) -> Callable[[], Any]:
    keys = submitted(environment)
    return lambda: preparation.segment({"job": keys.job}, None)


def check(environment: Environment) -> Callable[[], Any]:
    keys = submitted(environment)
    preparation.segment({"job": keys.job}, None)
    entry = json.loads(resources.read_object(keys.segments).splitlines()[0])
    return lambda: preparation.check({"job": keys.job, "segment": entry}, None)


def plan(environment: Environment) -> Callable[[], Any]:
    keys = submitted(environment)
    count = preparation.segment({"job": keys.job}, None)["segments"]
    for entry in resources.read_object(keys.segments).splitlines():
        preparation.check({"job": keys.job, "segment": json.loads(entry)}, None)
    assert count > 1
    return lambda: preparation.plan({"job": keys.job, "segments": count}, None)


def ask(environment: Environment) -> Callable[[], Any]:
    job = make_job(read_platform(environment))
    event = {"job": job.id, "attempt": 1, "key": JobKeys(job.id).shards, "taskToken": "token"}
    return lambda: scheduling.ask(event, None)


def admit(job: Job, *, places: int | None, may_refuse: bool = False) -> None:
    table = Table(boto3.resource("dynamodb").Table(resources.TABLE))
    admission = Admission(
        job=job.id,
        attempt=1,
        task_token=f"token of {job.id}",
        shards=3,
        shards_before=0,
        seconds_per_shard=1200.0,
        usd=50.0,
        places=places,
        lines_per_shard=10.0,
        may_refuse=may_refuse,
    )
    AdmissionTable(table).put(admission, now=NOW)


def schedule(environment: Environment) -> Callable[[], Any]:
    """Jobs that wait, cannot end in time, run, were never begun, and are too late, begun or not."""
    platform = read_platform(environment)
    waiting, running = make_job(platform), make_job(platform)
    admit(make_job(platform, expires_at=NOW + 60), places=None, may_refuse=True)
    admit(waiting, places=None)
    admit(running, places=1)
    platform.jobs.move(running.id, "in_progress", before=["validating"], now=NOW)
    make_job(platform, created_at=NOW - HOUR)
    late = make_job(platform, expires_at=NOW)
    platform.executions.start(late)
    make_job(platform, expires_at=NOW)
    return lambda: scheduling.schedule({}, None)


def running(platform: BatchPlatform, *done: str) -> Job:
    """A job of three shards of which these are done, and another has two lines in its log."""
    job = make_job(platform)
    objects, keys = Objects(resources.BUCKET), JobKeys(job.id)
    description = JobDescription(job.id, job.team, job.model, job.endpoint, float(job.expires_at))
    objects.write(keys.description, description.to_json().encode())
    objects.write(keys.invalid, b'{"custom_id":null}\n')
    for shard in done:
        of_shard = keys.shard(shard)
        objects.write(of_shard.output, b'{"custom_id":"a"}\n' * 9)
        objects.write(of_shard.error, b'{"custom_id":"b"}\n')
        objects.write(of_shard.done, ShardDone(shard, 9, 1, 11, Usage(1000, 500, 100)).to_json().encode())
    answer = {"status_code": 200, "body": {"usage": {"prompt_tokens": 5, "completion_tokens": 7}}}
    rows = [
        {"id": "batch_req_x_s2_0", "response": answer, "error": None},
        {"id": "batch_req_x_s2_1", "response": None, "error": {"code": "endpoint_error"}},
    ]
    log = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    objects.write(keys.shard("s2").chunk(0), log)
    return platform.jobs.move(job.id, "in_progress", before=["validating"], now=NOW)


def merge(environment: Environment) -> Callable[[], Any]:
    job = running(read_platform(environment), "s0", "s1")
    return lambda: completion.merge({"job": job.id, "attempt": 1}, None)


def finish(environment: Environment) -> Callable[[], Any]:
    job = running(read_platform(environment), "s0", "s1", "s2")
    completion.merge({"job": job.id, "attempt": 1}, None)
    return lambda: completion.finish({"job": job.id}, None)


def finish_in_part(environment: Environment) -> Callable[[], Any]:
    job = running(read_platform(environment), "s0")
    completion.merge({"job": job.id, "attempt": 1}, None)
    return lambda: completion.finish({"job": job.id}, None)


def reject(environment: Environment) -> Callable[[], Any]:
    job = make_job(read_platform(environment))
    objects, keys = Objects(resources.BUCKET), JobKeys(job.id)
    found = Plan(3, 1, 0, 3, 1, 2, 3, 0.5, 5.0, (PlanProblem("over_budget", "about $5.00"),))
    objects.write(keys.plan, found.to_json().encode())
    objects.write(keys.invalid, b'{"custom_id":null}\n')
    return lambda: completion.reject({"job": job.id}, None)


def ended(job: Job) -> dict[str, Any]:
    """The event of an execution that has ended by itself."""
    return {"detail": {"status": "ABORTED", "input": json.dumps({"job": job.id, "attempt": 1})}}


def close(environment: Environment) -> Callable[[], Any]:
    job = running(read_platform(environment), "s1")
    return lambda: completion.close(ended(job), None)


def close_of_a_cancelled_job(environment: Environment) -> Callable[[], Any]:
    platform = read_platform(environment)
    job = running(platform, "s1")
    platform.jobs.move(job.id, "cancelling", before=["in_progress"], now=NOW)
    return lambda: completion.close(ended(job), None)


def asked(environment: Environment, path: str, body: object, **headers: str) -> Callable[[], Any]:
    """A request of team search, sent again by its client until it is answered."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: Api(read_platform(environment)).post(path, body, named)


def submit(environment: Environment) -> Callable[[], Any]:
    file = Api(read_platform(environment)).file()
    body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return asked(environment, "/v1/batches", body, idempotency_key="once")


def submit_without_a_key(environment: Environment) -> Callable[[], Any]:
    file = Api(read_platform(environment)).file()
    body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return asked(environment, "/v1/batches", body, x_stainless_retry_count="1")


def cancel(environment: Environment) -> Callable[[], Any]:
    platform = read_platform(environment)
    job = running(platform)
    platform.executions.start(job)
    return asked(environment, f"/v1/batches/{job.id}/cancel", {})


def cancel_what_never_began(environment: Environment) -> Callable[[], Any]:
    job = make_job(read_platform(environment), created_at=NOW - HOUR)
    return asked(environment, f"/v1/batches/{job.id}/cancel", {})


def redrive(environment: Environment) -> Callable[[], Any]:
    job = running(read_platform(environment), "s1")
    completion.close(ended(job), None)
    return asked(environment, f"/v1/batches/{job.id}/redrive", {})


def complete_an_upload(environment: Environment) -> Callable[[], Any]:
    api = Api(read_platform(environment))
    begun = {"bytes": 8, "filename": "f", "mime_type": "text/plain", "purpose": "batch"}
    path = f"/v1/uploads/{api.post('/v1/uploads', begun).body['id']}"
    contents = (b"one\n", b"two\n")
    parts = [api.post_form(f"{path}/parts", {}, file="data", content=each).body["id"] for each in contents]
    return asked(environment, f"{path}/complete", {"part_ids": parts})


def manifest(environment: Environment) -> Callable[[], Any]:
    key, body = "nightly/search/a.manifest.json", json.dumps(MANIFEST).encode()
    etag = boto3.client("s3").put_object(Bucket=resources.BUCKET, Key=key, Body=body)["ETag"]
    found = {"key": key, "size": len(body), "etag": etag.strip('"')}
    event = {"detail": {"bucket": {"name": resources.BUCKET}, "object": found}}
    return lambda: submission.handle_object(event, None)


def wrong_manifest(environment: Environment) -> Callable[[], Any]:
    event = {**SCHEDULED, "manifest": {"inputs": []}}
    return lambda: submission.handle_schedule(event, None)


def cron(environment: Environment) -> Callable[[], Any]:
    return lambda: submission.handle_schedule({**SCHEDULED, "manifest": MANIFEST}, None)


SCHEDULED = {"schedule": "arn", "time": "2026-11-21T00:00:00Z", "queue": "nightly", "team": "search"}

PREPARATIONS: list[Preparation] = [
    segment,
    check,
    plan,
    ask,
    schedule,
    merge,
    finish,
    finish_in_part,
    reject,
    close,
    close_of_a_cancelled_job,
    submit,
    submit_without_a_key,
    cancel,
    cancel_what_never_began,
    redrive,
    complete_an_upload,
    manifest,
    wrong_manifest,
    cron,
]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": resources.REGION,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 10_000)
    return Stage()


@pytest.mark.parametrize("prepare", PREPARATIONS, ids=lambda each: each.__name__)
def test_after_any_call(stage: Stage, prepare: Preparation) -> None:
    with stage.world() as environment:
        calls = stage.run(prepare(environment)).calls
        undisturbed = stage.look(environment)
    assert calls
    for last in range(1, len(calls) + 1):
        with stage.world() as environment:
            function = prepare(environment)
            stage.run(function, last=last)
            stage.run(function)
            assert stage.look(environment) == undisturbed, f"killed after {calls[last - 1].operation}, {last}"


@pytest.mark.parametrize("prepare", PREPARATIONS, ids=lambda each: each.__name__)
def test_after_every_call(stage: Stage, prepare: Preparation) -> None:
    """Each process comes a call further than the one before."""
    with stage.world() as environment:
        calls = stage.run(prepare(environment)).calls
        undisturbed = stage.look(environment)
    with stage.world() as environment:
        function = prepare(environment)
        for last in range(1, len(calls) + 1):
            stage.run(function, last=last)
        stage.run(function)
        assert stage.look(environment) == undisturbed


def refusing(names: frozenset[str], error: ClientError, *, first: str) -> Callable[[Call], Exception | None]:
    """Refuse all calls of a service from the first one of an operation on."""
    begun: list[str] = []

    def refusal(call: Call) -> Exception | None:
        if call.operation == first or begun:
            begun.append(call.operation)
            return error if call.operation in names else None
        return None

    return refusal


def refused(code: str, said: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": said}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Any"
    )


#: Calls of DynamoDB, and those of S3 that need ``kms:GenerateDataKey`` (Amazon S3 User Guide, "Using
#: server-side encryption with AWS KMS keys", permissions). The bucket has a key of the platform.
OF_TABLES = frozenset(
    {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem"}
)
THAT_ENCRYPT = frozenset({"CreateMultipartUpload", "PutObject", "UploadPart", "UploadPartCopy"})
THROTTLED = refused(
    "ProvisionedThroughputExceededException",
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling",
    400,
)
BUCKET_KEY_DENIED = refused(
    "AccessDenied",
    "User: batch is not authorized to perform: kms:GenerateDataKey on resource: key because no "
    "identity-based policy allows the kms:GenerateDataKey action",
    403,
)
#: Functions whose errors the state machine repeats, by what they raise.
OF_STATES = {segment, check, plan, ask, merge, finish, finish_in_part, reject}


@pytest.mark.parametrize(
    ("names", "error", "kind"),
    [(OF_TABLES, THROTTLED, AwsBusyError), (THAT_ENCRYPT, BUCKET_KEY_DENIED, AwsDeniedError)],
    ids=["throttled", "key-denied"],
)
@pytest.mark.parametrize("prepare", PREPARATIONS, ids=lambda each: each.__name__)
def test_what_aws_refuses_is_done_by_the_next_call(
    stage: Stage, prepare: Preparation, names: frozenset[str], error: ClientError, kind: type[Exception]
) -> None:
    """Red if a line or a job is lost or doubled by a key that is denied for a while, or a throttled table;
    and if the state machine takes either for an error that stays."""
    with stage.world() as environment:
        calls = stage.run(prepare(environment)).calls
        undisturbed = stage.look(environment)
    for first in dict.fromkeys(call.operation for call in calls if call.operation in names):
        with stage.world() as environment:
            function = prepare(environment)
            failed = stage.refused(function, refusing(names, error, first=first))
            if prepare in OF_STATES:
                assert isinstance(failed, kind), f"{first}: {failed!r}"
            stage.run(function)
            assert stage.look(environment) == undisturbed, f"refused from {first} on"
