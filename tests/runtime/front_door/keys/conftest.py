"""AWS emulated in the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from inference_contracts.door_audit import Actor, AuditLog
from inference_contracts.door_key_acts import KeyActs
from inference_contracts.door_key_table import KeyTable
from tests.runtime.front_door.keys.key_tables import ADMIN, BUCKET, REGION, RULES, TABLE, TABLE_PROPERTIES


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of DynamoDB with an empty table of keys."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        client = boto3.client("dynamodb", region_name=REGION)
        client.create_table(**TABLE_PROPERTIES)
        yield client


@pytest.fixture
def key_table(dynamodb: Any) -> KeyTable:
    return KeyTable(dynamodb, TABLE)


@pytest.fixture
def s3(dynamodb: Any) -> Any:
    """A client of S3 with an empty bucket for the record of administration."""
    client = boto3.client("s3", region_name=REGION)
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return client


@pytest.fixture
def acts(key_table: KeyTable, s3: Any) -> KeyActs:
    """The acts of an administrator of all teams."""
    return KeyActs(key_table, AuditLog(s3, BUCKET, RULES.platform), RULES, Actor(ADMIN, "command"))
