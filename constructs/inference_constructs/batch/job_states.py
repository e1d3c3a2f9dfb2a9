"""How a job goes from its input to its results, as a state machine: data in the Amazon States Language.

An execution is an attempt at a job; its input is ``{"job": …, "attempt": …}``. It catches nothing: whatever
ends it is told to the function that closes jobs. Children of its maps are one segment or one shard, never one
request (https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

State = dict[str, Any]

#: Seconds without a sign of life after which a shard is given to another worker.
HEARTBEAT_SECONDS = 120
#: Seconds to wait, at most, before a shard that went silent is given to another again. Each attempt leaves
#: four events of the 25,000 that an execution may have: so they last for the longest deadline.
LONGEST_SILENCE_SECONDS = 120
#: Segments that are checked at once.
SEGMENTS_AT_ONCE = 50
# A worker that says that a shard can never be done is believed the second time; another failure is tried more
# often; and one that is gone or has no time yet always: the job's deadline ends that.
_HOPELESS = ["InvalidJobError", "MissingObjectError", "RenderingError"]
_FAILED_ATTEMPTS = 4
_SILENT_ATTEMPTS = 100_000
#: Parts whose answers go to the signal store at once.
_PUBLISHED_AT_ONCE = 20
# A store that is not reached, or is restarted, is waited for: twenty minutes, until a redrive has to do it.
# Of several retriers the first that fits decides alone, so this is the only one.
_STORE_RETRY = {
    "ErrorEquals": ["States.ALL"],
    "IntervalSeconds": 5,
    "BackoffRate": 2,
    "MaxDelaySeconds": 300,
    "MaxAttempts": 9,
}
_LAMBDA_ERRORS = [
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
]


@dataclass(frozen=True)
class JobResources:
    """What the state machine works with.

    Parameters
    ----------
    functions
        ARNs by name: ``segment``, ``check``, ``plan``, ``reject``, ``ask``, ``merge``, ``finish``, and
        ``publish`` where jobs may publish their answers.
    bucket_name
        The batch bucket.
    """

    functions: Mapping[str, str]
    bucket_name: str


def job_definition(resources: JobResources) -> dict[str, Any]:
    """Return the definition.

    Parameters
    ----------
    resources
        What it works with.
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
    """Check the input and cut it into shards; an attempt after the first has them already."""
    return {
        "ReadInput": {
            "Type": "Pass",
            "Assign": {
                "attempt": "{% $states.input.attempt %}",
                "job": "{% $states.input.job %}",
                "shardsKey": (
                    "{% 'jobs/' & $states.input.job & ($states.input.attempt > 1 "
                    "? '/undone-' & $states.input.attempt & '.jsonl' : '/shards.jsonl') %}"
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
            concurrency=SEGMENTS_AT_ONCE,
            selector={"job": "{% $job %}", "segment": "{% $states.context.Map.Item.Value %}"},
            state={
                **_invoke(resources, "check", "{% $states.input %}"),
                # The results of all children together may have 256 KiB.
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
    """Wait for places, then let workers do the shards."""
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
                },
            },
            "Assign": {
                "places": "{% $states.result.places %}",
                "queueUrl": "{% $states.result.queueUrl %}",
            },
            "Retry": _retries(),
            "Next": "Shards",
        },
        "Shards": {
            **_map(
                resources,
                key="{% $shardsKey %}",
                label="Shards",
                child="RunShard",
                concurrency="{% $places %}",
                selector={
                    "job": "{% $job %}",
                    "queueUrl": "{% $queueUrl %}",
                    "shard": "{% $states.context.Map.Item.Value.shard %}",
                },
                state=_shard(),
                following="Merge",
            ),
            # A shard that cannot be done does not end the others; a redrive runs it.
            "ToleratedFailurePercentage": 100,
        },
    }


def _shard() -> State:
    """Give a shard to whichever worker takes it, and wait until that says that it is done."""
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
        "HeartbeatSeconds": HEARTBEAT_SECONDS,
        "Retry": [
            {
                "ErrorEquals": ["States.HeartbeatTimeout"],
                "IntervalSeconds": 1,
                "BackoffRate": 2,
                "MaxDelaySeconds": LONGEST_SILENCE_SECONDS,
                "MaxAttempts": _SILENT_ATTEMPTS,
            },
            {"ErrorEquals": _HOPELESS, "IntervalSeconds": 5, "MaxAttempts": 1},
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
    """Join the results, publish them where the job asks for that, and end the job."""
    publishes = "publish" in resources.functions
    return {
        "Merge": _invoke(
            resources,
            "merge",
            {"job": "{% $job %}", "attempt": "{% $attempt %}"},
            following="HasPublications" if publishes else "Finish",
            assign={"publications": "{% $states.result.Payload.publications %}"} if publishes else None,
        ),
        **(_publishing(resources) if publishes else {}),
        "Finish": _invoke(resources, "finish", {"job": "{% $job %}"}, following="Done"),
        "Done": {"Type": "Succeed"},
    }


def _publishing(resources: JobResources) -> dict[str, State]:
    """Bring the answers of each part of the results into the signal store."""
    return {
        "HasPublications": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $publications > 0 %}", "Next": "Publications"}],
            "Default": "Finish",
        },
        "Publications": {
            **_map(
                resources,
                key="{% 'jobs/' & $job & '/publications.jsonl' %}",
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
                following="Finish",
            ),
            # The job's files are there whatever becomes of its signals; its end says which are not.
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
) -> State:
    """Return a map over the lines of an object of the batch bucket, a child a line."""
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
            # A state's name is the only one of it in the whole machine.
            "StartAt": child,
            "States": {child: state},
        },
        "MaxConcurrency": concurrency,
        "Output": {},
        "Next": following,
    }


def _invoke(
    resources: JobResources,
    function: str,
    payload: Mapping[str, str] | str,
    *,
    following: str | None = None,
    assign: Mapping[str, str] | None = None,
) -> State:
    """Return a call of a function; what it returns is not kept but for what is assigned."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": resources.functions[function], "Payload": payload},
        "Retry": _retries(),
        **({"Assign": dict(assign)} if assign else {}),
        **({"Output": {}, "Next": following} if following else {}),
    }


def _retries() -> list[dict[str, Any]]:
    """Return how a call of a function is tried again: often if Lambda was busy, a little if it broke off.

    Each of them can be called again after it ended anywhere.
    """
    busy = {"ErrorEquals": _LAMBDA_ERRORS, "MaxAttempts": 6}
    ended = {"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 2}
    backoff = {"IntervalSeconds": 2, "BackoffRate": 2, "JitterStrategy": "FULL"}
    return [{**each, **backoff} for each in (busy, ended)]
