"""Rotates secrets by their Lambda function. ministack copies the current value and calls nobody.

"Configures and starts the asynchronous process of rotating the secret" (AWS Secrets Manager API Reference,
RotateSecret): the answer comes before the first step. A new version has the label `AWSPENDING` and no value
until the function puts one, and a step that fails begins the rotation again ("Secrets Manager retries the
entire rotation process multiple times", AWS Secrets Manager User Guide, "Rotation by Lambda function").

Nothing here rotates by the schedule of a secret: no run is so long.
"""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from ministack.core.responses import error_response_json, json_response, new_uuid
from ministack.services import lambda_svc, secretsmanager

from inference_local.emulator.refusals import AwsApiError
from inference_local.emulator.service_refusals import (
    ROTATION_IN_PROGRESS,
    ROTATION_NOT_ALLOWED,
    ROTATION_WITHOUT_FUNCTION,
    SECRET_VALUE_EXISTS,
    SECRET_VERSION_EMPTY,
)

_STEPS: Final = ("createSecret", "setSecret", "testSecret", "finishSecret")
#: Seconds before each attempt of a rotation.
_PAUSES: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_PRINCIPAL: Final = "secretsmanager.amazonaws.com"
_CURRENT, _PENDING = "AWSCURRENT", "AWSPENDING"
_PLAIN_ROTATE = secretsmanager._rotate_secret
_PLAIN_PUT = secretsmanager._put_secret_value
_PLAIN_GET = secretsmanager._get_secret_value

_logger = logging.getLogger(__name__)


def _error(error: AwsApiError) -> Any:
    return error_response_json(error.code, str(error), 400)


def _rotate(data: Mapping[str, Any]) -> Any:
    _, secret = secretsmanager._resolve(data.get("SecretId"))
    if not secret or secret.get("DeletedDate"):
        return _PLAIN_ROTATE(data)
    function = data.get("RotationLambdaARN") or secret.get("RotationLambdaARN")
    if not function:
        return _error(ROTATION_WITHOUT_FUNCTION.error())
    if not _may_invoke(function):
        return _error(ROTATION_NOT_ALLOWED.error())
    waiting = [each["Stages"] for each in secret["Versions"].values() if _PENDING in each["Stages"]]
    if waiting and _CURRENT not in waiting[0]:
        return _error(ROTATION_IN_PROGRESS.error())
    secret["RotationLambdaARN"], secret["RotationEnabled"] = function, True
    secret["RotationRules"] = data.get("RotationRules") or secret.get("RotationRules")
    version = data.get("ClientRequestToken") or new_uuid()
    _label(secret, version)
    context = contextvars.copy_context()
    worker = threading.Thread(
        target=context.run, args=(_run, secret["ARN"], function, version), daemon=True, name="rotation"
    )
    worker.start()
    return json_response({"ARN": secret["ARN"], "Name": secret["Name"], "VersionId": version})


def _label(secret: Mapping[str, Any], version: str) -> None:
    """Give a version, which need not exist, the label of the one that is being rotated to."""
    for each in secret["Versions"].values():
        if _PENDING in each["Stages"]:
            each["Stages"].remove(_PENDING)
    empty: dict[str, Any] = {
        "SecretString": None,
        "SecretBinary": None,
        "CreatedDate": int(time.time()),
        "Stages": [],
    }
    secret["Versions"].setdefault(version, empty)["Stages"].append(_PENDING)


def _run(arn: str, function: str, version: str) -> None:
    """Call the function for each step; from the first one again if one fails."""
    for pause in _PAUSES:
        time.sleep(pause)
        if all(_step(arn, function, version, step) for step in _STEPS):
            _, secret = secretsmanager._resolve(arn)
            if secret:
                secret["LastRotatedDate"] = int(time.time())
            return
    _logger.error("the rotation of %s has failed", arn)


def _step(arn: str, function: str, version: str, step: str) -> bool:
    record = _function(function)
    if record is None:
        return False
    event = {"Step": step, "SecretId": arn, "ClientRequestToken": version}
    result = lambda_svc._execute_function(record, event)
    if result.get("error"):
        _logger.warning("%s of %s failed: %s", step, arn, result.get("body"))
    return not result.get("error")


def _function(arn: str) -> dict[str, Any] | None:
    """Return a function, or the version of it that the ARN names."""
    name, _, version = arn.partition(":function:")[2].partition(":")
    function = lambda_svc._functions.get(name)
    record = function["versions"].get(version) if function and version else function
    if record is None:
        return None
    found = dict(record)
    found["config"] = {**(found.get("config") or found), "FunctionArn": arn}
    return found


def _may_invoke(arn: str) -> bool:
    """Return whether the policy of the function lets Secrets Manager call it."""
    name = arn.partition(":function:")[2].partition(":")[0]
    function = lambda_svc._functions.get(name)
    return function is not None and _PRINCIPAL in json.dumps(function["policy"])


def _put(data: Mapping[str, Any]) -> Any:
    _, secret = secretsmanager._resolve(data.get("SecretId"))
    token = data.get("ClientRequestToken")
    before = secret["Versions"].get(token) if secret and token else None
    if secret and before and before.get("SecretString") is not None:
        if before["SecretString"] != data.get("SecretString"):
            return _error(SECRET_VALUE_EXISTS.error(token=token, arn=secret["ARN"]))
        answer = {"ARN": secret["ARN"], "Name": secret["Name"], "VersionId": token}
        return json_response({**answer, "VersionStages": list(before["Stages"])})
    if secret and _PENDING in (data.get("VersionStages") or ()):
        for each in secret["Versions"].values():
            if _PENDING in each["Stages"]:
                each["Stages"].remove(_PENDING)
    return _PLAIN_PUT(data)


def _get(data: Mapping[str, Any]) -> Any:
    _, secret = secretsmanager._resolve(data.get("SecretId"))
    version = data.get("VersionId")
    if secret and not version and data.get("VersionStage"):
        version, _ = secretsmanager._find_stage_version(secret, data["VersionStage"])
    found = secret["Versions"].get(version) if secret and version else None
    if found and found.get("SecretString") is None and found.get("SecretBinary") is None:
        return _error(SECRET_VERSION_EMPTY.error(version=version))
    return _PLAIN_GET(data)


def apply() -> None:
    """Apply the patch."""
    secretsmanager._rotate_secret = _rotate
    secretsmanager._put_secret_value = _put
    secretsmanager._get_secret_value = _get
