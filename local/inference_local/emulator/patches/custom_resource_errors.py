"""Fails a custom resource at once when its Lambda function fails.

ministack ignores the result of the invocation and waits for a response that a crashed function never sends,
for an hour by default (as CloudFormation does). With this patch, the function's error becomes the failure
reason of the resource.
"""

from collections.abc import Mapping
from typing import Any

from ministack.services import lambda_svc
from ministack.services.cloudformation import custom_resource

_PLAIN_EXECUTE = lambda_svc._execute_function_with_config_scope


def _execute(function: Mapping[str, Any], event: Mapping[str, Any]) -> Any:
    """Invoke the function. If it fails, send the failure response in its place."""
    result = _PLAIN_EXECUTE(function, event)
    address = event.get("ResponseURL")
    if address and result.get("error"):
        name = function.get("config", {}).get("FunctionName", "the function")
        reason = f"{name} failed: {result.get('body')}"
        custom_resource.deliver_response(address.rpartition("/")[2], {"Status": "FAILED", "Reason": reason})
    return result


def apply() -> None:
    """Apply the patch."""
    lambda_svc._execute_function_with_config_scope = _execute
