"""The state machine of a batch job, from its input to its results, in the Amazon States Language (ASL).

An execution is one attempt at a job. Its input is ``{"job": …, "attempt": …}``. The machine itself catches
no error: an event rule reports each failed execution to the function that closes jobs. A child execution of a
map processes one segment or one shard, never one request
(https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html).

The definition is ASL because CDK's classes do not fit (tried with aws-cdk-lib 2.275.0). ``SqsSendMessage``
needs the queue at synthesis, but a job's queue is known only at run time. The classes also grant more than
this machine needs: ``LambdaInvoke`` allows every version of a function, ``S3JsonItemReader`` every object
of the bucket, and ``DistributedMap`` redriving child executions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference_contracts.batch_keys import JOBS_PREFIX, JobKeys
from inference_contracts.batch_limits import (
    MAX_CONCURRENT_SEGMENTS,
    MAX_TASK_RETRY_SECONDS,
    TASK_HEARTBEAT_SECONDS,
)
from inference_contracts.batch_names import (
    BUSY_ERROR,
    DENIED_ERROR,
    PERMANENT_ERRORS,
    SHARD_MAP_LABEL,
)

State = dict[str, Any]


def _after_job(key: str) -> str:
    """Return the part of a key of `_KEYS` that follows the job's identifier."""
    return key.removeprefix(JOBS_PREFIX)


#: Keys of a job's objects, without the job's identifier. The state machine inserts it.
_KEYS = JobKeys("")
_SHARDS, _PUBLICATIONS = _after_job(_KEYS.shards), _after_job(_KEYS.publications)
_BEFORE_ATTEMPT, _AFTER_ATTEMPT = _after_job(_KEYS.undone("#")).split("#")
# Maximum number of retries per error. A shard that a worker reports as impossible is retried once, other
# failures more often. Lost workers, workers without free time and throttled functions are retried until the
# job's deadline.
_FAILED_ATTEMPTS = 4
_BUSY_ATTEMPTS = 100_000
# With waits of up to MAX_TASK_RETRY_SECONDS, half of them on average, about a quarter of an hour.
_DENIED_ATTEMPTS = 20
#: Parts of the results that are published to the signal store at the same time.
_PUBLISHED_AT_ONCE = 20
# Retries last twenty minutes, in which an unreachable or restarting store can recover. After that a redrive
# is needed. Step Functions applies only the first matching retrier, so there is only this one.
_STORE_RETRY = {
    "ErrorEquals": ["States.ALL"],
    "IntervalSeconds": 5,
    "BackoffRate": 2,
    "MaxDelaySeconds": 300,
    "MaxAttempts": 9,
}
_BUSY_ERRORS = [
    BUSY_ERROR,
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
]


@dataclass(frozen=True)
class JobResources:
    """Resources of the state machine."""

    functions: Mapping[str, str]
    """ARNs by name: ``segment``, ``check``, ``plan``, ``reject``, ``ask``, ``merge``, ``finish``, and
    ``publish`` if jobs may publish their answers."""
    bucket_name: str
    """Name of the batch bucket."""


def job_definition(resources: JobResources) -> dict[str, Any]:
    """Return the definition.

    resources: Resources of the state machine.
    """
    return {
        "Comment": "Runs an attempt at a batch job",
        "QueryLanguage": "JSONata",
        "StartAt": "ReadInput",
        "States": {
            **_preparing(resources),
            **_working(resources),
            **_ending(resources),
        },
    }


def _preparing(resources: JobResources) -> dict[str, State]:
    """Check the input and split it into shards. Only the first attempt does this."""
    return {
        "ReadInput": {
            "Type": "Pass",
            "Assign": {
                "attempt": "{% $states.input.attempt %}",
                "job": "{% $states.input.job %}",
                "shardsKey": (
                    f"{{% '{JOBS_PREFIX}' & $states.input.job & ($states.input.attempt > 1 "
                    f"? '{_BEFORE_ATTEMPT}' & $states.input.attempt & '{_AFTER_ATTEMPT}' : '{_SHARDS}') %}}"
                ),
            },
            "Next": "IsFirstAttempt",
        },
        "IsFirstAttempt": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $attempt > 1 %}", "Next": "Ask"}],
            "Default": "Segment",
        },
        "Segment": _invoke(
            resources,
            "segment",
            {"job": "{% $job %}"},
            following="HasSegments",
            assign={
                "segments": "{% $states.result.Payload.segments %}",
                "segmentsKey": "{% $states.result.Payload.key %}",
            },
        ),
        "HasSegments": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $segments > 0 %}", "Next": "Segments"}],
            "Default": "Plan",
        },
        "Segments": _map(
            resources,
            key="{% $segmentsKey %}",
            label="Segments",
            child="CheckSegment",
            concurrency=MAX_CONCURRENT_SEGMENTS,
            selector={"job": "{% $job %}", "segment": "{% $states.context.Map.Item.Value %}"},
            state={
                **_invoke(resources, "check", "{% $states.input %}"),
                # The results of all children share a limit of 256 KiB.
                "Output": {},
                "End": True,
            },
            following="Plan",
        ),
        "Plan": _invoke(
            resources,
            "plan",
            {"job": "{% $job %}", "segments": "{% $segments %}"},
            following="IsAccepted",
            assign={"accepted": "{% $states.result.Payload.accepted %}"},
        ),
        "IsAccepted": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $accepted %}", "Next": "Ask"}],
            "Default": "Reject",
        },
        "Reject": _invoke(resources, "reject", {"job": "{% $job %}"}, following="Done"),
    }


def _working(resources: JobResources) -> dict[str, State]:
    """Wait for places, then run the shards on workers."""
    return {
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Arguments": {
                "FunctionName": resources.functions["ask"],
                "Payload": {
                    "job": "{% $job %}",
                    "attempt": "{% $attempt %}",
                    "key": "{% $shardsKey %}",
                    "taskToken": "{% $states.context.Task.Token %}",
                    # A redrive runs in any case: its team has asked for it.
                    "mayRefuse": "{% $attempt = 1 %}",
                },
            },
            "Assign": {
                "places": "{% $states.result.places %}",
                "queueUrl": "{% $states.result.queueUrl %}",
            },
            "Retry": _retries(),
            "Next": "HasPlaces",
        },
        # A job that cannot meet its deadline gets no places. A map without a maximum would run all its items.
        "HasPlaces": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $places > 0 %}", "Next": "Shards"}],
            "Default": "Reject",
        },
        "Shards": {
            **_map(
                resources,
                key="{% $shardsKey %}",
                label=SHARD_MAP_LABEL,
                child="RunShard",
                concurrency="{% $places %}",
                selector={
                    "job": "{% $job %}",
                    "queueUrl": "{% $queueUrl %}",
                    "shard": "{% $states.context.Map.Item.Value.shard %}",
                },
                state=_shard(),
                failed="ShardFailed",
                following="Merge",
            ),
            # A failed shard does not stop the others. A redrive runs it again.
            "ToleratedFailurePercentage": 100,
        },
    }


def _shard() -> State:
    """Send a shard to the queue and wait for a worker's result."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Arguments": {
            "QueueUrl": "{% $states.input.queueUrl %}",
            "MessageBody": {
                "job": "{% $states.input.job %}",
                "shard": "{% $states.input.shard %}",
                "taskToken": "{% $states.context.Task.Token %}",
            },
        },
        "HeartbeatSeconds": TASK_HEARTBEAT_SECONDS,
        "Retry": [
            {
                "ErrorEquals": ["States.HeartbeatTimeout"],
                "IntervalSeconds": 1,
                "BackoffRate": 2,
                "MaxDelaySeconds": MAX_TASK_RETRY_SECONDS,
                "MaxAttempts": _BUSY_ATTEMPTS,
            },
            {"ErrorEquals": list(PERMANENT_ERRORS), "IntervalSeconds": 5, "MaxAttempts": 1},
            {
                "ErrorEquals": ["States.ALL"],
                "IntervalSeconds": 5,
                "BackoffRate": 2,
                "MaxAttempts": _FAILED_ATTEMPTS,
                "JitterStrategy": "FULL",
            },
        ],
        "Output": {},
        "End": True,
    }


def _ending(resources: JobResources) -> dict[str, State]:
    """Merge the results, publish them if the job requests it, and end the job."""
    publishes = "publish" in resources.functions
    return {
        "Merge": _invoke(
            resources,
            "merge",
            {"job": "{% $job %}", "attempt": "{% $attempt %}", "mayContinue": True},
            following="IsMerged",
            assign={
                "merged": "{% $states.result.Payload.merged %}",
                **({"publications": "{% $states.result.Payload.publications %}"} if publishes else {}),
            },
        ),
        # One call joins results for some minutes. Very large jobs take several calls.
        "IsMerged": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $merged %}", "Next": "HasPublications" if publishes else "Finish"}],
            "Default": "Merge",
        },
        **(_publishing(resources) if publishes else {}),
        "Finish": _invoke(resources, "finish", {"job": "{% $job %}"}, following="Done"),
        "Done": {"Type": "Succeed"},
    }


def _publishing(resources: JobResources) -> dict[str, State]:
    """Write the answers of each part of the results to the signal store."""
    return {
        "HasPublications": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $publications > 0 %}", "Next": "Publications"}],
            "Default": "Finish",
        },
        "Publications": {
            **_map(
                resources,
                key=f"{{% '{JOBS_PREFIX}' & $job & '{_PUBLICATIONS}' %}}",
                label="Publications",
                child="PublishPart",
                concurrency=_PUBLISHED_AT_ONCE,
                selector={"job": "{% $job %}", "part": "{% $states.context.Map.Item.Value.part %}"},
                state={
                    **_invoke(resources, "publish", "{% $states.input %}"),
                    "Retry": [_STORE_RETRY],
                    "Output": {},
                    "End": True,
                },
                failed="PartFailed",
                following="Finish",
            ),
            # The job's files are complete even if signals fail; the last state reports which parts failed.
            "ToleratedFailurePercentage": 100,
        },
    }


def _map(
    resources: JobResources,
    *,
    key: str,
    label: str,
    child: str,
    concurrency: int | str,
    selector: Mapping[str, str],
    state: State,
    following: str,
    failed: str | None = None,
) -> State:
    """Return a map over the lines of an object of the batch bucket, with one child execution per line.

    With ``failed``, the name of another state, a child whose task failed for good ends there. A child that
    failed itself would add its whole description to the map's result, which may have 256 KiB: some hundred
    such children would end the job, although the map tolerates them
    (https://docs.aws.amazon.com/step-functions/latest/dg/input-output-resultwriter.html, "If a child workflow
    execution fails, Step Functions returns its execution result unchanged").
    """
    states = {child: state}
    if failed:
        caught = {"ErrorEquals": ["States.ALL"], "Output": {}, "Next": failed}
        states = {child: {**state, "Catch": [caught]}, failed: {"Type": "Succeed"}}
    return {
        "Type": "Map",
        "Label": label,
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSONL"},
            "Arguments": {"Bucket": resources.bucket_name, "Key": key},
        },
        "ItemSelector": dict(selector),
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            # State names must be unique in the whole machine.
            "StartAt": child,
            "States": states,
        },
        "MaxConcurrency": concurrency,
        "Output": {},
        "Next": following,
    }


def _invoke(
    resources: JobResources,
    function: str,
    payload: Mapping[str, str | bool] | str,
    *,
    following: str | None = None,
    assign: Mapping[str, str] | None = None,
) -> State:
    """Return a state that calls a function. Only the assigned parts of the result are kept."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": resources.functions[function], "Payload": payload},
        "Retry": _retries(),
        **({"Assign": dict(assign)} if assign else {}),
        **({"Output": {}, "Next": following} if following else {}),
    }


def _retries() -> list[dict[str, Any]]:
    """Return the retries of a function: until the job's deadline if AWS was busy, few if the call failed.

    Calls are throttled for as long as many jobs are checked at the same time. A wait of up to
    MAX_TASK_RETRY_SECONDS keeps the retries within the events of an execution. The scheduler stops a job at
    its deadline. Every function is idempotent, even after an interruption.
    """
    backoff = {"IntervalSeconds": 2, "BackoffRate": 2, "JitterStrategy": "FULL"}
    busy = {
        "ErrorEquals": _BUSY_ERRORS,
        **backoff,
        "MaxDelaySeconds": MAX_TASK_RETRY_SECONDS,
        "MaxAttempts": _BUSY_ATTEMPTS,
    }
    denied = {
        "ErrorEquals": [DENIED_ERROR],
        **backoff,
        "MaxDelaySeconds": MAX_TASK_RETRY_SECONDS,
        "MaxAttempts": _DENIED_ATTEMPTS,
    }
    return [busy, denied, {"ErrorEquals": ["States.TaskFailed"], **backoff, "MaxAttempts": 2}]
