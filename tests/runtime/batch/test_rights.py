"""Functions call nothing of AWS that their roles do not allow: the emulations allow everything."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from inference_constructs.batch.job_functions import OTHER_FUNCTIONS, STATE_FUNCTIONS, JobFunction
from tests.runtime.batch import resources, test_every_call_fails
from tests.runtime.batch.every_call import Call, Stage
from tests.runtime.batch.test_every_call_fails import PREPARATIONS, Preparation

FUNCTIONS = {**STATE_FUNCTIONS, **OTHER_FUNCTIONS}
#: Functions by what is prepared for them, where that has another name.
CALLED = {
    "finish_in_part": "finish",
    "close_of_a_cancelled_job": "close",
    "submit": "api",
    "submit_without_a_key": "api",
    "cancel": "api",
    "cancel_what_never_began": "api",
    "redrive": "api",
    "complete_an_upload": "api",
    "manifest": "object",
    "wrong_manifest": "cron",
}
#: What an operation needs, and the parameter that says on what
#: (https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html).
NEEDED = {
    "AbortMultipartUpload": ("s3:AbortMultipartUpload", "Key"),
    "CompleteMultipartUpload": ("s3:PutObject", "Key"),
    "CreateMultipartUpload": ("s3:PutObject", "Key"),
    "DeleteObject": ("s3:DeleteObject", "Key"),
    "GetObject": ("s3:GetObject", "Key"),
    "HeadObject": ("s3:GetObject", "Key"),
    "ListObjectsV2": ("s3:ListBucket", "Prefix"),
    "PutObject": ("s3:PutObject", "Key"),
    "UploadPart": ("s3:PutObject", "Key"),
    **{
        name: (f"dynamodb:{name}", "TableName")
        for name in ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
    },
    "PutEvents": ("events:PutEvents", ""),
    **{
        name: (f"states:{name}", "")
        for name in (
            *("DescribeExecution", "ListMapRuns", "SendTaskSuccess"),
            *("StartExecution", "StopExecution", "UpdateMapRun"),
        )
    },
}

stage = test_every_call_fails.stage


def needed(call: Call) -> Iterator[tuple[str, str]]:
    """Iterate over what a call needs: an action, and a key, a prefix or a table."""
    given: dict[str, Any] = call.parameters
    if call.operation == "DeleteObjects":
        for each in given["Delete"]["Objects"]:
            yield "s3:DeleteObject", each["Key"]
    elif call.operation == "UploadPartCopy":
        yield "s3:GetObject", given["CopySource"]["Key"]
        yield "s3:PutObject", given["Key"]
    elif call.operation == "TransactWriteItems":
        for item in given["TransactItems"]:
            for kind, of in item.items():
                yield f"dynamodb:{kind}Item", of["TableName"]
    else:
        action, parameter = NEEDED[call.operation]
        yield action, given.get(parameter, "")


def is_allowed(function: JobFunction, action: str, on: str) -> bool:
    """Return whether a function's role allows an action."""
    if action == "s3:ListBucket":
        return any(fnmatchcase(on, pattern) for pattern in function.lists)
    if action.startswith("s3:"):
        patterns = [pattern for pattern, actions in function.objects.items() if action in actions]
        if action == "s3:GetObject":
            patterns += ["files/*"] * function.reads_inputs + ["nightly/*"] * function.reads_manifests
        return any(fnmatchcase(on, pattern) for pattern in patterns)
    if action.startswith("dynamodb:"):
        return action in (function.records if on == resources.TABLE else function.progress)
    return function.sends_events if action == "events:PutEvents" else action in function.states


@pytest.mark.parametrize("prepare", PREPARATIONS, ids=lambda each: each.__name__)
def test_what_a_function_calls_is_allowed(stage: Stage, prepare: Preparation) -> None:
    name = prepare.__name__
    function = FUNCTIONS[CALLED.get(name, name)]
    with stage.world() as environment:
        calls = stage.run(prepare(environment)).calls
    refused = {
        (action, on) for call in calls for action, on in needed(call) if not is_allowed(function, action, on)
    }
    assert refused == set()
