"""An item of DynamoDB has at most 400 KB, in the emulator too, and controllers write less than that."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from inference_local.emulator.emulator import Emulator
from inference_local.emulator.refusals import ITEM_TOO_LARGE
from operations.operations_table import AuditRecord, OperationsTable
from tests.runtime.gpu_health.world import TABLE, create_table
from tests.runtime.operations.fresh_process import begin_anew

#: 1.2 MB as JSON, for 2,000 elastic roles.
RECORD = {f"qwen3-8b-{role * 7919}-worker": f"{role * 0.123456789} requests " * 25 for role in range(2000)}


@pytest.fixture
def table(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Any:
    begin_anew(monkeypatch, emulator.environment())
    create_table()
    return boto3.resource("dynamodb").Table(TABLE)


def test_a_large_item_is_refused_and_the_audit_record_of_two_thousand_roles_is_not(table: Any) -> None:
    """Red if a decision is stored as text, or if the emulator takes what DynamoDB refuses."""
    with pytest.raises(ClientError) as refused:
        table.put_item(Item={"scope": "a", "entry": "b", "record": "x" * 409_600})
    said = refused.value.response["Error"]
    assert (said["Code"], said["Message"]) == (ITEM_TOO_LARGE.code, ITEM_TOO_LARGE.message)
    stored = OperationsTable(table, "chat", "main")
    stored.write("shift", RECORD, version=0, now=1.0, audit=AuditRecord("shift", RECORD, 1.0))
    assert [each.content for each in stored.list("audit#", 1.0)] == [RECORD]
