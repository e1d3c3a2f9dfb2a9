"""Refuses a change of a stack that CloudFormation still changes. ministack takes it."""

from __future__ import annotations

from typing import Any

from ministack.services.cloudformation import handlers
from ministack.services.cloudformation.helpers import _error, _p

from inference_local.emulator.refusals import STACK_CHANGES

_PLAIN_CREATE = handlers._ACTION_HANDLERS["CreateChangeSet"]


def _create(parameters: dict[str, str]) -> Any:
    stack = handlers._resolve_stack(_p(parameters, "StackName"))
    status = str(stack["StackStatus"]) if stack else ""
    if stack and status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
        error = STACK_CHANGES.error(stack=str(stack["StackId"]), status=status)
        return _error(error.code, str(error))
    return _PLAIN_CREATE(parameters)


def apply() -> None:
    """Apply the patch."""
    handlers._ACTION_HANDLERS["CreateChangeSet"] = _create
