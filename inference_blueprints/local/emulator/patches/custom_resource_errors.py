"""Fails a custom resource at once when its Lambda function fails.

ministack ignores the outcome of the invocation and waits for an answer that a crashed function never sends,
an hour by default (CloudFormation does too). Here the function's error becomes the reason of the resource.
"""

from collections.abc import Mapping
from typing import Any

from ministack.services import lambda_svc
from ministack.services.cloudformation import custom_resource

_PLAIN_EXECUTE = lambda_svc._execute_function_with_config_scope


def _execute(function: Mapping[str, Any], event: Mapping[str, Any]) -> Any:
    """Invoke the function, and answer for it when it was to answer and failed."""
    result = _PLAIN_EXECUTE(function, event)
    address = event.get("ResponseURL")
    if address and result.get("error"):
        name = function.get("config", {}).get("FunctionName", "the function")
        reason = f"{name} failed: {result.get('body')}"
        custom_resource.deliver_response(address.rpartition("/")[2], {"Status": "FAILED", "Reason": reason})
    return result


def apply() -> None:
    """Answer for functions that fail."""
    lambda_svc._execute_function_with_config_scope = _execute
