"""The function: `key_rotation.handler.handle`. AWS Secrets Manager calls it once for each step.

`inference_contracts.platform_keys` has the variables of its environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config

from inference_contracts import platform_keys as names
from inference_contracts.door_audit import Actor, AuditLog
from inference_contracts.door_key_table import KeyTable
from inference_contracts.platform_keys import KeyOwners
from key_rotation.rotation import KeyRotation

_CODE: Final = Path(__file__).parents[1]
_RETRIES: Final = Config(retries={"mode": "standard", "max_attempts": 5})


def handle(event: Mapping[str, str], context: Any) -> None:
    """Do one step of a rotation.

    event: `Step`, `SecretId` and `ClientRequestToken` (AWS Secrets Manager User Guide, "Rotation by Lambda
        function").
    """
    actor = Actor(context.invoked_function_arn, "rotation")
    rotation().run(
        event["Step"], event["SecretId"], event["ClientRequestToken"], actor=actor, now=time.time()
    )


@cache
def rotation() -> KeyRotation:
    """Return what the variables of the environment describe."""
    owners = KeyOwners.from_json((_CODE / os.environ[names.ROTATION_OWNERS]).read_bytes())
    dynamodb: Any = boto3.client("dynamodb", config=_RETRIES)
    s3: Any = boto3.client("s3", config=_RETRIES)
    return KeyRotation(
        secrets=boto3.client("secretsmanager", config=_RETRIES),
        table=KeyTable(dynamodb, os.environ[names.ROTATION_TABLE]),
        audit=AuditLog(s3, os.environ[names.ROTATION_AUDIT_BUCKET], os.environ[names.ROTATION_PLATFORM]),
        owners={each.tag: each for each in owners.owners},
    )
