"""The functions of batch as data: the handler and the permissions of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inference_contracts import batch_names
from inference_contracts.batch_keys import FILES_PREFIX, JOBS_PREFIX, UPLOADS_PREFIX, JobKeys
from inference_contracts.batch_limits import AUTHORIZER_SECONDS, RESERVED_CALLS


@dataclass(frozen=True)
class JobFunction:
    """One Lambda function."""

    handler: str
    """Import path of the Python function that Lambda calls."""
    timeout_seconds: int = 60
    memory_mib: int = 512
    """`timeout_seconds`, `memory_mib`: Limits. Lambda allocates CPU in proportion to memory."""
    objects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """S3 actions on objects of the batch bucket, by key pattern."""
    lists: Sequence[str] = ()
    """Patterns of keys that it lists, or that it reads and that may be missing."""
    records: Sequence[str] = ()
    progress: Sequence[str] = ()
    """`records`, `progress`: DynamoDB actions on the table of records and on the table of job progress."""
    states: Sequence[str] = ()
    """Step Functions actions on executions of the state machine."""
    reads_inputs: bool = False
    """Whether it reads inputs: objects below the teams' S3 prefixes."""
    reads_manifests: bool = False
    """Whether it reads manifests: objects of the batch bucket below the queues' prefixes."""
    sends_events: bool = False
    """Whether it puts events on the account's default event bus."""
    reads_parquet: bool = False
    """Whether it uses pyarrow. The layer with pyarrow exists in some regions only."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables."""
    reserved: int | None = None
    """Calls that may run at the same time, and for which Lambda keeps room. None for the calls that the
    account has left."""
    takes_events: bool = False
    """Whether its callers do not wait for the result: EventBridge, or the scheduler."""


_JOBS = f"{JOBS_PREFIX}*"
_FILES = f"{FILES_PREFIX}*"
_UPLOADS = f"{UPLOADS_PREFIX}*"
_ANY_JOB = JobKeys("*")
_CHANGE_RECORDS = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query")
_WRITE_LARGE = ("s3:PutObject", "s3:AbortMultipartUpload")
_START = ("states:StartExecution",)
_STOP = ("states:StopExecution",)

#: Functions that the state machine calls, by the name of the state.
STATE_FUNCTIONS: Mapping[str, JobFunction] = {
    "segment": JobFunction(
        "batch.preparation.handlers.segment",
        timeout_seconds=900,
        memory_mib=1769,  # One vCPU, and memory for the Parquet reader.
        objects={_JOBS: ("s3:GetObject", "s3:PutObject")},
        reads_inputs=True,
        reads_parquet=True,
    ),
    "check": JobFunction(
        "batch.preparation.handlers.check",
        timeout_seconds=900,
        memory_mib=3538,  # Two vCPUs: one is for the Parquet reader, which may use 2 GiB.
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
        reads_inputs=True,
        reads_parquet=True,
        reserved=RESERVED_CALLS["check"],
    ),
    "plan": JobFunction(
        "batch.preparation.handlers.plan",
        timeout_seconds=900,
        memory_mib=1769,
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
    ),
    "ask": JobFunction(
        "batch.scheduling.handlers.ask",
        objects={_JOBS: ("s3:GetObject",)},
        lists=(_JOBS,),
        records=("dynamodb:PutItem",),
        progress=("dynamodb:PutItem",),
        sends_events=True,
    ),
    "merge": JobFunction(
        "batch.completion.handlers.merge",
        timeout_seconds=900,
        memory_mib=1769,
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
        lists=(_JOBS,),
        records=_CHANGE_RECORDS,
    ),
    "finish": JobFunction(
        "batch.completion.handlers.finish",
        objects={_JOBS: ("s3:GetObject",)},
        lists=(_JOBS,),
        records=_CHANGE_RECORDS,
        sends_events=True,
    ),
    "reject": JobFunction(
        "batch.completion.handlers.reject",
        timeout_seconds=300,
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
        lists=(_JOBS,),
        records=_CHANGE_RECORDS,
        sends_events=True,
    ),
}

#: Functions with other callers, by name.
OTHER_FUNCTIONS: Mapping[str, JobFunction] = {
    "schedule": JobFunction(
        "batch.scheduling.handlers.schedule",
        takes_events=True,
        # It lists the finished shards of every running job, which takes over a second for a very large job.
        timeout_seconds=300,
        # It deletes expired files, and the intermediate objects of ended jobs.
        objects={_JOBS: ("s3:GetObject", "s3:DeleteObject"), _FILES: ("s3:DeleteObject",)},
        lists=(_JOBS, _FILES),
        records=(*_CHANGE_RECORDS, "dynamodb:DeleteItem"),
        progress=("dynamodb:Query",),
        states=(
            "states:SendTaskSuccess",
            "states:DescribeExecution",
            "states:ListMapRuns",
            "states:UpdateMapRun",
            *_START,
            *_STOP,
        ),
        reserved=RESERVED_CALLS["schedule"],
    ),
    "close": JobFunction(
        "batch.completion.handlers.close",
        takes_events=True,
        timeout_seconds=900,
        memory_mib=1769,
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
        lists=(_JOBS,),
        records=_CHANGE_RECORDS,
        sends_events=True,
    ),
    "object": JobFunction(
        "batch.submission.handlers.handle_object",
        takes_events=True,
        objects={_ANY_JOB.request: ("s3:PutObject",)},
        records=_CHANGE_RECORDS,
        states=_START,
        reads_manifests=True,
    ),
    "cron": JobFunction(
        "batch.submission.handlers.handle_schedule",
        takes_events=True,
        objects={_ANY_JOB.request: ("s3:PutObject",)},
        records=_CHANGE_RECORDS,
        states=_START,
    ),
    "api": JobFunction(
        "batch.api.handler.handle",
        timeout_seconds=29,  # The limit of API Gateway.
        memory_mib=1769,
        objects={
            _ANY_JOB.request: ("s3:GetObject", "s3:PutObject"),
            # For redrives.
            _ANY_JOB.plan: ("s3:GetObject",),
            _ANY_JOB.outcome: ("s3:GetObject",),
            _ANY_JOB.shards: ("s3:GetObject",),
            _ANY_JOB.description: ("s3:GetObject", "s3:PutObject"),
            _ANY_JOB.undone("*"): ("s3:PutObject",),
            _ANY_JOB.output: ("s3:GetObject", "s3:DeleteObject"),
            _ANY_JOB.error: ("s3:GetObject", "s3:DeleteObject"),
            # For addresses of generated images.
            f"{_ANY_JOB.images}*": ("s3:GetObject",),
            _FILES: ("s3:GetObject", "s3:DeleteObject", *_WRITE_LARGE),
            _UPLOADS: ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
        },
        lists=(_UPLOADS, _JOBS),
        records=(*_CHANGE_RECORDS, "dynamodb:DeleteItem"),
        progress=("dynamodb:Query",),
        states=(*_START, *_STOP),
        reserved=RESERVED_CALLS["api"],
    ),
    "authorizer": JobFunction(
        "batch.authorizer.handler.handle",
        timeout_seconds=20,
        environment={batch_names.AUTHORIZER_SECONDS: str(AUTHORIZER_SECONDS)},
        reserved=RESERVED_CALLS["authorizer"],
    ),
}
