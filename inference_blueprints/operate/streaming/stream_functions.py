"""Calls the functions of a streaming job, which run in the platform's VPC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from botocore.config import Config

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.errors import UserError
from inference_contracts.streaming_names import JOB_FUNCTIONS_OUTPUT

#: Lambda's longest run. A second attempt would call the model twice.
CALL_CONFIG: Final = Config(read_timeout=910, retries={"mode": "standard", "total_max_attempts": 1})


def streaming_job(blueprint: Blueprint, name: str) -> StreamingJob:
    """Return a job of a blueprint. Raises UserError if the blueprint has no such job."""
    jobs = {job.name: job for job in blueprint.spec.streaming}
    if name not in jobs:
        allowed = ", ".join(jobs) or "none: the blueprint has no section `streaming`"
        raise UserError(f"got the job {name}; allowed are {allowed}")
    return jobs[name]


def function_names(account: Account, platform: str) -> Mapping[str, Mapping[str, str]]:
    """Return the names of the functions of each job.

    platform: `metadata.name`.
    Raises UserError if the stack is not deployed.
    """
    outputs = stack_outputs(account, f"{platform}-Streaming", JOB_FUNCTIONS_OUTPUT)
    names: Mapping[str, Mapping[str, str]] = json.loads(outputs[JOB_FUNCTIONS_OUTPUT])
    return names


def call_function(account: Account, name: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function and return its answer.

    event: What it is called with.
    Raises UserError if the function fails or AWS refuses the call. The message has the reason.
    """
    with readable_errors():
        answer = account.patient_client("lambda", CALL_CONFIG).invoke(
            FunctionName=name, Payload=json.dumps(event).encode()
        )
    content: Any = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        reason = content.get("errorMessage") or content.get("errorType") or answer["FunctionError"]
        raise UserError(f"{name}: {reason}; see its log group in CloudWatch")
    found: dict[str, Any] = content
    return found
