"""A table of API keys in an emulation in this process, and records for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from inference_contracts import door_key_table as table
from inference_contracts.door_audit import AUDIT_PREFIX, AdministrationRecord
from inference_contracts.door_configuration import DoorTeam
from inference_contracts.door_key_acts import KeyModel, KeyRules
from inference_contracts.door_keys import KeyRecord, key_hash, new_key

REGION: Final = "us-west-2"
ACCOUNT: Final = "123456789012"
TABLE: Final = "door-keys"
ADMIN: Final = f"arn:aws:sts::{ACCOUNT}:assumed-role/Admin/anna"
NOW: Final = 1_790_000_000
DAY: Final = 24 * 3600

#: As the stack makes it.
TABLE_PROPERTIES: Final[dict[str, Any]] = {
    "TableName": TABLE,
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [
        {"AttributeName": table.BUCKET_ATTRIBUTE, "KeyType": "HASH"},
        {"AttributeName": table.ID_ATTRIBUTE, "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": table.BUCKET_ATTRIBUTE, "AttributeType": "S"},
        {"AttributeName": table.ID_ATTRIBUTE, "AttributeType": "S"},
        {"AttributeName": table.CHANGE_ATTRIBUTE, "AttributeType": "N"},
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": table.CHANGE_INDEX,
            "KeySchema": [
                {"AttributeName": table.BUCKET_ATTRIBUTE, "KeyType": "HASH"},
                {"AttributeName": table.CHANGE_ATTRIBUTE, "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def record(team: str = "search", **facts: Any) -> KeyRecord:
    """Return the record of a new key."""
    made = new_key()
    plain = KeyRecord(
        id=made.id,
        team=team,
        project=None,
        hashes=(key_hash(made.secret),),
        old_until=None,
        models=None,
        created=NOW,
        created_by=ADMIN,
        expires=NOW + 90 * DAY,
        revoked=None,
        change=0,
    )
    return replace(plain, **facts)


BUCKET: Final = "door-audit"
RULES: Final = KeyRules(
    platform="chat",
    teams=(
        DoorTeam("search", (f"arn:aws:iam::{ACCOUNT}:role/teams/Search",)),
        DoorTeam("adverts", (f"arn:aws:iam::{ACCOUNT}:role/Adverts",)),
    ),
    models=(
        KeyModel("openai/gpt-oss-120b", None),
        KeyModel("qwen3", ("search",)),
    ),
    max_days=365,
    rotation_hours=24,
)


def audit_records(s3: Any) -> list[AdministrationRecord]:
    """Return the record of administration, in the order of its objects' keys."""
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=AUDIT_PREFIX).get("Contents", [])
    bodies = [s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in listed]
    return [AdministrationRecord.from_json(body) for body in bodies]
