"""Writes a function's log only where AWS would: its role may have to create the log group.

The emulator creates a missing group for every function. On AWS a function creates one only with the
permission logs:CreateLogGroup (https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html).
Without it, a call that outlives its stack leaves nothing behind.
"""

from __future__ import annotations

from typing import Any

from ministack.core import iam_evaluator
from ministack.services import cloudwatch_logs, iam, lambda_svc

_emit_plain = lambda_svc._emit_lambda_logs
_REGION_IN_ARN, _ACCOUNT_IN_ARN = 3, 4


def apply() -> None:
    """Apply the patch."""
    lambda_svc._emit_lambda_logs = _emit


def _emit(function: dict[str, Any], *arguments: Any, **named: Any) -> None:
    configuration = function.get("config") or function
    name = configuration.get("FunctionName", "unknown")
    group = (configuration.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{name}"
    is_there = name in lambda_svc._functions
    if group in cloudwatch_logs._log_groups or (is_there and _may_create(configuration["Role"], group)):
        _emit_plain(function, *arguments, **named)


def _may_create(role: str, group: str) -> bool:
    """Return whether a role may create a log group. One that was never made here, as in small tests, may."""
    name = role.rpartition("/")[2]
    if name not in iam._roles:
        return True
    account = role.split(":")[_ACCOUNT_IN_ARN]
    arn = cloudwatch_logs._make_group_arn(group)
    context = iam_evaluator.EvalContext(
        principal_arn=role,
        principal_type="AssumedRole",
        principal_account=account,
        action="logs:CreateLogGroup",
        resource_arn=arn,
        region=arn.split(":")[_REGION_IN_ARN],
    )
    policies = iam_evaluator._gather_role_policies(name, account)
    return bool(iam_evaluator.evaluate(context, policies).decision == "Allow")
