"""Schedules and policies of secrets, which the emulator has in its API but not in its CloudFormation.

A schedule starts a rotation when it is created or updated (AWS CloudFormation,
`AWS::SecretsManager::RotationSchedule`, `RotateImmediatelyOnUpdate`: "By default, Secrets Manager rotates the
secret immediately"), and the resource is complete before the rotation is.
"""

from __future__ import annotations

import json
from typing import Any, Final

from ministack.services import secretsmanager

from inference_local.emulator.resource_handlers.registry import (
    Made,
    ResourceRequest,
    handled_types,
    register,
)

SCHEDULE: Final = "AWS::SecretsManager::RotationSchedule"
POLICY: Final = "AWS::SecretsManager::ResourcePolicy"


def _call(operation: Any, resource_type: str, **parameters: Any) -> None:
    status, _, body = operation({name: each for name, each in parameters.items() if each is not None})
    if status != 200:  # noqa: PLR2004 - the status of success
        answer = json.loads(body)
        raise ValueError(f"{resource_type}: {answer.get('message') or answer.get('Message')}")


class RotationScheduleHandler:
    """Lets the function rotate its secret."""

    def create(self, request: ResourceRequest) -> Made:
        """Set the schedule, and start a rotation. Return the ARN of the secret: what `Ref` returns."""
        properties = request.properties
        secret = str(properties["SecretId"])
        if str(properties.get("RotateImmediatelyOnUpdate", True)).lower() == "true":
            _call(
                secretsmanager._rotate_secret,
                SCHEDULE,
                SecretId=secret,
                RotationLambdaARN=properties.get("RotationLambdaARN"),
                RotationRules=properties.get("RotationRules"),
            )
        return secret, {}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Rotate the secret no more."""
        _, secret = secretsmanager._resolve(request.physical_id)
        if secret:
            secret["RotationEnabled"] = False


class SecretPolicyHandler:
    """Puts and deletes the policy of a secret."""

    def create(self, request: ResourceRequest) -> Made:
        """Put the policy, and return the ARN of the secret: what `Ref` returns."""
        secret, document = str(request.properties["SecretId"]), request.properties["ResourcePolicy"]
        _call(
            secretsmanager._put_resource_policy, POLICY, SecretId=secret, ResourcePolicy=json.dumps(document)
        )
        return secret, {"Id": secret}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Delete the policy."""
        secretsmanager._delete_resource_policy({"SecretId": request.physical_id})


def register_secret_resources() -> None:
    """Register the handlers. Raises RuntimeError if the emulator handles one of the types itself."""
    for resource_type in {SCHEDULE, POLICY} & handled_types():
        raise RuntimeError(f"the emulator handles {resource_type} itself; delete this handler")
    register(SCHEDULE, RotationScheduleHandler())
    register(POLICY, SecretPolicyHandler())
