"""AWS emulated in the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from inference_contracts.door_key_table import KeyTable
from tests.runtime.front_door.keys.key_tables import REGION, TABLE, TABLE_PROPERTIES


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
