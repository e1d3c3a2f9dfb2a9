"""Checks that streaming jobs run, and that an event becomes a signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.streaming.stream_functions import call_function, function_names
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.errors import UserError
from inference_contracts.streaming_names import PROBE, flink_application

_CHECK: Final = "streaming"
#: A signal that takes longer is not near real time. The first answer of a worker can be slow.
_WAIT_SECONDS: Final = 60


def streaming_jobs(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that each job runs, then send it an event and wait for the signal."""
    jobs = platform.blueprint.spec.streaming
    if not jobs:
        return
    try:
        functions = function_names(platform.account, platform.name)
    except UserError as error:
        yield CheckResult(_CHECK, "error", str(error), platform.deploy_command)
        return
    for job in jobs:
        state = _application(platform, job)
        yield state
        if state.severity == "ok":
            yield _probe(platform, job, functions[job.name][PROBE])


def _application(platform: VerifiedPlatform, job: StreamingJob) -> CheckResult:
    name = flink_application(platform.name, job.name)
    client = platform.account.client("kinesisanalyticsv2")
    try:
        detail = client.describe_application(ApplicationName=name)["ApplicationDetail"]
    except client.exceptions.ResourceNotFoundException:
        return CheckResult(
            _CHECK, "error", f"{job.name}: the application {name} is gone", platform.deploy_command
        )
    status = detail["ApplicationStatus"]
    message = f"{job.name}: the application {name} is {status}"
    if status == "READY":
        command = platform.aws(f"kinesisanalyticsv2 start-application --application-name {name}")
        return CheckResult(_CHECK, "error", f"{message}, so it does not run", command)
    if status != "RUNNING":
        command = platform.aws(f"kinesisanalyticsv2 describe-application --application-name {name}")
        return CheckResult(_CHECK, "warning", message, command)
    return CheckResult(_CHECK, "ok", message)


def _probe(platform: VerifiedPlatform, job: StreamingJob, function: str) -> CheckResult:
    event = {"event": job.events.examples[0], "waitSeconds": _WAIT_SECONDS}
    logs = platform.aws(f"logs tail /aws/kinesis-analytics/{flink_application(platform.name, job.name)}")
    try:
        answer = call_function(platform.account, function, event)
    except UserError as error:
        return CheckResult(_CHECK, "error", f"{job.name}: the probe failed: {error}", logs)
    if answer["milliseconds"] is None:
        message = f"{job.name}: no signal for {answer['session']} within {_WAIT_SECONDS} seconds"
        return CheckResult(_CHECK, "error", message, logs)
    seconds = answer["milliseconds"] / 1000
    return CheckResult(_CHECK, "ok", f"{job.name}: an event became a signal in {seconds:.1f} s")
