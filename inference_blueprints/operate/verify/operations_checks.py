"""Checks that the controllers of the Operations stack run, may act and have their table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_blueprints.spec.controllers import controllers_of
from inference_contracts import operations_names

_CHECK = "controllers"
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
        return CheckResult(_CHECK, "error", f"{stack} has no table", platform.deploy_command)
    client = platform.account.client("dynamodb")
    try:
        status = client.describe_table(TableName=name)["Table"]["TableStatus"]
    except client.exceptions.ResourceNotFoundException:
        status = "gone"
    message = f"the table {name} is {status}"
    if status != "ACTIVE":
        return CheckResult(
            _CHECK, "error", message, platform.aws(f"dynamodb describe-table --table-name {name}")
        )
    return CheckResult(_CHECK, "ok", message)


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
        return CheckResult(_CHECK, "error", message, command)
    return CheckResult(_CHECK, "ok", message)


def _freeze_switch(platform: VerifiedPlatform) -> CheckResult:
    name = operations_names.freeze_parameter(platform.name, operations_names.MAIN_CELL)
    client = platform.account.client("ssm")
    try:
        value = client.get_parameter(Name=name)["Parameter"]["Value"]
    except client.exceptions.ParameterNotFound:
        message = f"the freeze switch {name} is gone, so nothing is replaced"
        return CheckResult(_CHECK, "error", message, platform.deploy_command)
    if value != operations_names.FREEZE_VALUES[0]:
        command = platform.aws(f"ssm put-parameter --overwrite --name {name} --value none")
        return CheckResult(_CHECK, "warning", f"the freeze switch is {value!r}", command)
    return CheckResult(_CHECK, "ok", "the freeze switch is off")
