"""Checks of a platform through AWS: stacks, control plane, add-ons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inference_blueprints.operate.check_results import CheckResult, Checks
from inference_blueprints.operate.cloudformation.deployed_stacks import DeployedStack, deployed_stacks
from inference_blueprints.operate.kubernetes import describe
from inference_blueprints.operate.streaming import call_function, function_names
from inference_blueprints.operate.verify.caller_checks import CERTIFICATE_CHECK, caller_certificates
from inference_blueprints.operate.verify.synthesised_platform import Template
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import StreamingJob
from inference_catalog.log_groups import control_plane_log_group
from inference_contracts import operations_names
from inference_contracts.errors import UserError
from inference_contracts.streaming_job import PROBE, flink_applications

_STREAM_CHECK: Final = "streaming"
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
        yield CheckResult(_STREAM_CHECK, "error", str(error), platform.deploy_command)
        return
    for job in jobs:
        names = flink_applications(platform.name, job.name, job.shards)
        states = [_application(platform, job, name) for name in names]
        yield from states
        if all(state.severity == "ok" for state in states):
            yield _probe(platform, job, functions[job.name][PROBE])


def _application(platform: VerifiedPlatform, job: StreamingJob, name: str) -> CheckResult:
    client = platform.account.client("kinesisanalyticsv2")
    try:
        detail = client.describe_application(ApplicationName=name)["ApplicationDetail"]
    except client.exceptions.ResourceNotFoundException:
        return CheckResult(
            _STREAM_CHECK, "error", f"{job.name}: the application {name} is gone", platform.deploy_command
        )
    status = detail["ApplicationStatus"]
    message = f"{job.name}: the application {name} is {status}"
    if status == "READY":
        command = platform.aws(f"kinesisanalyticsv2 start-application --application-name {name}")
        return CheckResult(_STREAM_CHECK, "error", f"{message}, so it does not run", command)
    if status != "RUNNING":
        command = platform.aws(f"kinesisanalyticsv2 describe-application --application-name {name}")
        return CheckResult(_STREAM_CHECK, "warning", message, command)
    return CheckResult(_STREAM_CHECK, "ok", message)


def _probe(platform: VerifiedPlatform, job: StreamingJob, function: str) -> CheckResult:
    event = {"event": job.events.examples[0], "waitSeconds": _WAIT_SECONDS}
    name = flink_applications(platform.name, job.name, job.shards)[0]
    logs = platform.aws(f"logs tail /aws/kinesis-analytics/{name}")
    try:
        answer = call_function(platform.account, function, event)
    except UserError as error:
        return CheckResult(_STREAM_CHECK, "error", f"{job.name}: the probe failed: {error}", logs)
    if answer["milliseconds"] is None:
        message = f"{job.name}: no signal for {answer['session']} within {_WAIT_SECONDS} seconds"
        return CheckResult(_STREAM_CHECK, "error", message, logs)
    seconds = answer["milliseconds"] / 1000
    return CheckResult(_STREAM_CHECK, "ok", f"{job.name}: an event became a signal in {seconds:.1f} s")


_OPERATIONS_CHECK = "controllers"
_WINDOW = timedelta(minutes=3)
_TABLE = "AWS::DynamoDB::GlobalTable"


def controllers(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that each controller ended a run within three minutes, is not frozen, and has its table."""
    found = controllers_of(platform.blueprint.spec)
    if not found:
        return
    yield _table(platform)
    for each in found:
        yield _runs(platform, each.service, each.minute_function)
    yield _freeze_switch(platform)


def _table(platform: VerifiedPlatform) -> CheckResult:
    stack = f"{platform.name}-Operations"
    resources = platform.account.client("cloudformation").describe_stack_resources(StackName=stack)
    name = next(
        (
            each["PhysicalResourceId"]
            for each in resources["StackResources"]
            if each["ResourceType"] == _TABLE
        ),
        None,
    )
    if name is None:
        return CheckResult(_OPERATIONS_CHECK, "error", f"{stack} has no table", platform.deploy_command)
    client = platform.account.client("dynamodb")
    try:
        status = client.describe_table(TableName=name)["Table"]["TableStatus"]
    except client.exceptions.ResourceNotFoundException:
        status = "gone"
    message = f"the table {name} is {status}"
    if status != "ACTIVE":
        return CheckResult(
            _OPERATIONS_CHECK, "error", message, platform.aws(f"dynamodb describe-table --table-name {name}")
        )
    return CheckResult(_OPERATIONS_CHECK, "ok", message)


def _runs(platform: VerifiedPlatform, service: str, function: str) -> CheckResult:
    values = (platform.name, operations_names.MAIN_CELL, service)
    answer = platform.account.client("cloudwatch").get_metric_statistics(
        Namespace=operations_names.METRIC_NAMESPACE,
        MetricName=operations_names.RUNS,
        Dimensions=[
            {"Name": name, "Value": value}
            for name, value in zip(operations_names.METRIC_DIMENSIONS, values, strict=True)
        ],
        StartTime=platform.now - _WINDOW,
        EndTime=platform.now,
        Period=60,
        Statistics=["Sum"],
    )
    runs = sum(point["Sum"] for point in answer["Datapoints"])
    message = f"{service} ended {runs:.0f} runs within {_WINDOW.seconds // 60} minutes"
    if not runs:
        command = platform.aws(
            f"logs tail /inference-blueprints/{platform.name}/operations/{function} --since 15m"
        )
        return CheckResult(_OPERATIONS_CHECK, "error", message, command)
    return CheckResult(_OPERATIONS_CHECK, "ok", message)


def _freeze_switch(platform: VerifiedPlatform) -> CheckResult:
    name = operations_names.freeze_parameter(platform.name, operations_names.MAIN_CELL)
    client = platform.account.client("ssm")
    try:
        value = client.get_parameter(Name=name)["Parameter"]["Value"]
    except client.exceptions.ParameterNotFound:
        message = f"the freeze switch {name} is gone, so nothing is replaced"
        return CheckResult(_OPERATIONS_CHECK, "error", message, platform.deploy_command)
    if value != operations_names.FREEZE_VALUES[0]:
        command = platform.aws(f"ssm put-parameter --overwrite --name {name} --value none")
        return CheckResult(_OPERATIONS_CHECK, "warning", f"the freeze switch is {value!r}", command)
    return CheckResult(_OPERATIONS_CHECK, "ok", "the freeze switch is off")


_COMPLETE = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_COMPLETE"}
_ACTIVE = "ACTIVE"
#: CloudWatch Logs "typically updates" the time of the last event "in less than an hour", and rarely later
#: (Amazon CloudWatch Logs API Reference, LogStream).
_QUIET = timedelta(hours=3)


def stacks(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Compare the account's stacks with the templates of the blueprint."""
    cloudformation = platform.account.client("cloudformation")
    deployed = {stack.name: stack for stack in deployed_stacks(cloudformation, platform.name)}
    wanted = platform.assembly.templates
    problems = [
        *(_missing(name, platform) for name in wanted if name not in deployed),
        *(_superfluous(name, platform) for name in deployed if name not in wanted),
    ]
    for name in wanted.keys() & deployed.keys():
        problems += _state(cloudformation, deployed[name], wanted[name], platform)
    yield from sorted(problems, key=lambda problem: problem.message)
    if not problems:
        yield CheckResult("stacks", "ok", f"{len(wanted)} are complete and match the blueprint")


def _missing(name: str, platform: VerifiedPlatform) -> CheckResult:
    return CheckResult("stacks", "error", f"{name} is not deployed", platform.deploy_command)


def _superfluous(name: str, platform: VerifiedPlatform) -> CheckResult:
    message = f"{name} is not in the blueprint"
    return CheckResult("stacks", "warning", message, f"blueprints prune {platform.name_or_path}")


def _state(
    cloudformation: Any, stack: DeployedStack, wanted: Template, platform: VerifiedPlatform
) -> Iterator[CheckResult]:
    """Report a stack that is incomplete or differs from the blueprint."""
    if stack.status not in _COMPLETE:
        message = f"{stack.name} is {stack.status}"
        yield CheckResult("stacks", "error", message, platform.deploy_command)
    answer = cloudformation.get_template(StackName=stack.stack_id, TemplateStage="Original")
    if _comparable(answer["TemplateBody"]) != _comparable(wanted):
        message = f"{stack.name} differs from the blueprint; see the differences with `blueprints diff`"
        yield CheckResult("stacks", "warning", message, platform.deploy_command)


def _comparable(template: Any) -> Any:
    """Return a template as CloudFormation returns it, with a question mark for each non-ASCII character."""
    text = template if isinstance(template, str) else json.dumps(template, ensure_ascii=False)
    return json.loads(re.sub(r"[^\x00-\x7F]", "?", text))


def control_plane(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Compare the cluster with the blueprint."""
    description = describe(platform.account, platform.name)
    eks = platform.blueprint.spec.cluster.eks
    wanted = eks.version if eks else description["version"]
    status, version = description["status"], description["version"]
    if status != _ACTIVE:
        command = platform.aws(f"eks describe-cluster --name {platform.name}")
        message = f"{platform.name} is {status}, not {_ACTIVE}; see its health issues"
        yield CheckResult("control plane", "error", message, command)
    if version != wanted:
        message = f"Kubernetes {version} runs, the blueprint has {wanted}"
        yield CheckResult("control plane", "error", message, platform.deploy_command)
    if status == _ACTIVE and version == wanted:
        yield CheckResult("control plane", "ok", f"Kubernetes {version}, {status}")


def add_ons(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that every add-on of the blueprint is installed and healthy."""
    eks = platform.account.client("eks")
    problems = [
        problem
        for name in sorted(platform.assembly.add_ons)
        for problem in _add_on_problems(eks, name, platform)
    ]
    yield from problems
    if not problems:
        yield CheckResult("add-ons", "ok", f"{', '.join(sorted(platform.assembly.add_ons))} are {_ACTIVE}")


def _add_on_problems(eks: Any, name: str, platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Report the problems of one add-on, with EKS's messages."""
    try:
        found = eks.describe_addon(clusterName=platform.name, addonName=name)["addon"]
    except eks.exceptions.ResourceNotFoundException:
        yield CheckResult("add-ons", "error", f"{name} is not installed", platform.deploy_command)
        return
    if found["status"] != _ACTIVE:
        issues = [f"{issue['code']}: {issue['message']}" for issue in found["health"].get("issues", [])]
        message = f"{name} is {found['status']} ({'; '.join(issues) or 'EKS gives no reason'})"
        command = platform.aws(f"eks describe-addon --cluster-name {platform.name} --addon-name {name}")
        yield CheckResult("add-ons", "error", message, command)


def control_plane_logs(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that logs of the control plane arrive in their log group."""
    logs, name = platform.account.client("logs"), control_plane_log_group(platform.name)
    command = platform.aws(f"logs describe-log-streams --log-group-name {name} --order-by LastEventTime")
    try:
        answer = logs.describe_log_streams(
            logGroupName=name, orderBy="LastEventTime", descending=True, limit=1
        )
    except logs.exceptions.ResourceNotFoundException:
        message = f"the log group {name} does not exist"
        yield CheckResult("control plane logs", "error", message, platform.deploy_command)
        return
    newest = max((stream.get("lastEventTimestamp", 0) for stream in answer["logStreams"]), default=0)
    if not newest:
        message = f"{name} has no event; check the logging of the cluster and of its log group"
        yield CheckResult("control plane logs", "error", message, command)
        return
    last = datetime.fromtimestamp(newest / 1000, UTC)
    message = f"{name}: the last event is of {last:%Y-%m-%d %H:%M} UTC"
    if platform.now - last > _QUIET:
        yield CheckResult("control plane logs", "warning", f"{message}; check the cluster's logging", command)
    else:
        yield CheckResult("control plane logs", "ok", message)


#: Those that do not depend on where the models run.
EVERYWHERE_CHECKS: Checks[VerifiedPlatform] = {
    "stacks": stacks,
    CERTIFICATE_CHECK: caller_certificates,
    "controllers": controllers,
    "streaming": streaming_jobs,
}
#: Checks by the name in their results, in the order of the output.
ACCOUNT_CHECKS: Checks[VerifiedPlatform] = {
    "stacks": stacks,
    CERTIFICATE_CHECK: caller_certificates,
    "control plane": control_plane,
    "add-ons": add_ons,
    "control plane logs": control_plane_logs,
    "controllers": controllers,
    "streaming": streaming_jobs,
}
