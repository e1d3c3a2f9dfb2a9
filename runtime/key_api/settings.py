"""Environment variables of the function.

================================ =========================================================================
Variable                         Meaning
================================ =========================================================================
``KEY_API_TABLE``                name of the DynamoDB table (`inference_contracts.door_key_table`)
``KEY_API_AUDIT_BUCKET``         bucket of the record of administration (`inference_contracts.door_audit`)
``KEY_API_RULES``                file with `KeyRules` as a document: a path from the folder that holds this
                                 package; all variables of a function share 4 KB
================================ =========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from inference_contracts import key_api_names
from inference_contracts.door_audit import AuditLog
from inference_contracts.door_key_acts import KeyRules
from inference_contracts.door_key_table import KeyTable

_CODE = Path(__file__).parents[1]
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 5})


class KeyApiSettingsError(Exception):
    """Environment variables are missing."""


@dataclass(frozen=True, slots=True)
class KeyApiPlatform:
    """What the function works with."""

    table: KeyTable
    audit: AuditLog
    rules: KeyRules


def read_platform(environment: Mapping[str, str]) -> KeyApiPlatform:
    """Return tables and rules. Raises KeyApiSettingsError if a variable is missing."""
    names = (key_api_names.TABLE, key_api_names.AUDIT_BUCKET, key_api_names.RULES)
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise KeyApiSettingsError(f"missing environment variables: {', '.join(missing)}; set them")
    table, bucket, file = (environment[name] for name in names)
    rules = KeyRules.from_json((_CODE / file).read_bytes())
    dynamodb: Any = boto3.client("dynamodb", config=_RETRIES)
    s3: Any = boto3.client("s3", config=_RETRIES)
    return KeyApiPlatform(KeyTable(dynamodb, table), AuditLog(s3, bucket, rules.platform), rules)
