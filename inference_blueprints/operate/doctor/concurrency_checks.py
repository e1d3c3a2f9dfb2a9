"""Checks that Lambda lets the account reserve the calls of the platform's functions."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.controllers import controllers_of
from inference_contracts.batch_limits import RESERVED_CALLS, UNRESERVED_CALLS

_NAME = "function calls"


def reserved_calls(context: DoctorContext) -> Iterator[CheckResult]:
    """Compare the calls that batch and controllers reserve with the concurrency of the account.

    New accounts have little. Lambda's own answer counts what other functions have reserved
    (https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html).
    """
    spec = context.blueprint.spec
    of_batch = [RESERVED_CALLS] if spec.batch else []
    functions = [*of_batch, *(controller.calls for controller in controllers_of(spec))]
    reserved = sum(sum(calls.values()) for calls in functions)
    if not reserved:
        return
    limit = context.account.client("lambda").get_account_settings()["AccountLimit"]
    total, unreserved = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    message = (
        f"the account runs {total:,} calls at the same time, {unreserved:,} are not reserved; the platform "
        f"reserves {reserved}, and {UNRESERVED_CALLS} must stay unreserved"
    )
    if unreserved >= reserved + UNRESERVED_CALLS:
        yield CheckResult(_NAME, "ok", message)
        return
    quota = catalog.service_quotas()["lambda.concurrency"]
    request = context.aws(
        f"service-quotas request-service-quota-increase --service-code lambda --quota-code {quota.code} "
        f"--desired-value {max(round(quota.value), total - unreserved + reserved + UNRESERVED_CALLS)}"
    )
    if total >= reserved + UNRESERVED_CALLS:
        message += "; nothing is wrong if this platform is already deployed, because it has reserved them"
        yield CheckResult(_NAME, "warning", message, request)
        return
    yield CheckResult(_NAME, "error", f"{message}; ask for more", request)
