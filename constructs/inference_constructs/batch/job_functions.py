"""The functions of batch: what each runs, and what each may do, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inference_blueprints.contracts import batch_environment
from inference_blueprints.contracts.batch_keys import FILES_PREFIX, JOBS_PREFIX, UPLOADS_PREFIX, JobKeys

#: For how long API Gateway remembers an answer about a token; one that ends sooner is refused.
AUTHORIZER_SECONDS = 300


@dataclass(frozen=True)
class JobFunction:
    """One function.

    Parameters
    ----------
    handler
        Function that Lambda calls, by its import path.
    timeout_seconds, memory_mib
        Its limits; Lambda gives processors with memory.
    objects
        Actions of S3 on keys of the batch bucket, by the key's pattern.
    lists
        Patterns of keys that it lists, or reads although they may be missing.
    records, progress
        Actions of DynamoDB on the table of records, and on that of how far jobs are.
    states
        Actions of Step Functions on executions of the state machine.
    reads_inputs
        Whether it reads what teams name: objects below their prefixes.
    reads_manifests
        Whether it reads what teams put below their own prefixes of the batch bucket.
    sends_events
        Whether it puts events on the account's default event bus.
    reads_parquet
        Whether it needs pyarrow, where the region has the layer that brings it.
    environment
        Variables of its own.
    """

    handler: str
    timeout_seconds: int = 60
    memory_mib: int = 512
    objects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lists: Sequence[str] = ()
    records: Sequence[str] = ()
    progress: Sequence[str] = ()
    states: Sequence[str] = ()
    reads_inputs: bool = False
    reads_manifests: bool = False
    sends_events: bool = False
    reads_parquet: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


_JOBS = f"{JOBS_PREFIX}*"
_FILES = f"{FILES_PREFIX}*"
_UPLOADS = f"{UPLOADS_PREFIX}*"
_ANY_JOB = JobKeys("*")
_CHANGE_RECORDS = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query")
_WRITE_LARGE = ("s3:PutObject", "s3:AbortMultipartUpload")
_START = ("states:StartExecution",)
_STOP = ("states:StopExecution",)

#: Functions of the state machine, by the name of the state that calls them.
STATE_FUNCTIONS: Mapping[str, JobFunction] = {
    "segment": JobFunction(
        "batch.preparation.handlers.segment",
        timeout_seconds=900,
        memory_mib=1769,  # One processor, and room for the reader of Parquet.
        objects={_JOBS: ("s3:GetObject", "s3:PutObject")},
        reads_inputs=True,
        reads_parquet=True,
    ),
    "check": JobFunction(
        "batch.preparation.handlers.check",
        timeout_seconds=900,
        memory_mib=3538,  # Two processors: one for the reader of Parquet, which may have 2 GiB.
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
        reads_inputs=True,
        reads_parquet=True,
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

#: Functions that something else calls, by name.
OTHER_FUNCTIONS: Mapping[str, JobFunction] = {
    "schedule": JobFunction(
        "batch.scheduling.handlers.schedule",
        # It lists what is done of every job that runs: a second and more for each of the largest.
        timeout_seconds=300,
        objects={_JOBS: ("s3:GetObject",)},
        lists=(_JOBS,),
        records=_CHANGE_RECORDS,
        states=("states:SendTaskSuccess", "states:ListMapRuns", "states:UpdateMapRun", *_START, *_STOP),
    ),
    "close": JobFunction(
        "batch.completion.handlers.close",
        timeout_seconds=900,
        memory_mib=1769,
        objects={_JOBS: ("s3:GetObject", *_WRITE_LARGE)},
        lists=(_JOBS,),
        records=_CHANGE_RECORDS,
        sends_events=True,
    ),
    "object": JobFunction(
        "batch.submission.handlers.handle_object",
        objects={_ANY_JOB.request: ("s3:PutObject",)},
        records=_CHANGE_RECORDS,
        states=_START,
        reads_manifests=True,
    ),
    "cron": JobFunction(
        "batch.submission.handlers.handle_schedule",
        objects={_ANY_JOB.request: ("s3:PutObject",)},
        records=_CHANGE_RECORDS,
        states=_START,
    ),
    "api": JobFunction(
        "batch.api.handler.handle",
        timeout_seconds=29,  # API Gateway waits no longer.
        memory_mib=1769,
        objects={
            _ANY_JOB.request: ("s3:GetObject", "s3:PutObject"),
            # A redrive reads and writes these.
            _ANY_JOB.plan: ("s3:GetObject",),
            _ANY_JOB.outcome: ("s3:GetObject",),
            _ANY_JOB.shards: ("s3:GetObject",),
            _ANY_JOB.description: ("s3:GetObject", "s3:PutObject"),
            _ANY_JOB.undone("*"): ("s3:PutObject",),
            _ANY_JOB.output: ("s3:GetObject", "s3:DeleteObject"),
            _ANY_JOB.error: ("s3:GetObject", "s3:DeleteObject"),
            _FILES: ("s3:GetObject", "s3:DeleteObject", *_WRITE_LARGE),
            _UPLOADS: ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
        },
        lists=(_UPLOADS, _JOBS),
        records=(*_CHANGE_RECORDS, "dynamodb:DeleteItem"),
        progress=("dynamodb:Query",),
        states=(*_START, *_STOP),
    ),
    "authorizer": JobFunction(
        "batch.authorizer.handler.handle",
        timeout_seconds=20,
        environment={batch_environment.AUTHORIZER_SECONDS: str(AUTHORIZER_SECONDS)},
    ),
}
