"""What the front door uses of the emulated account: its tables, its records, and keys for its teams."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inference_blueprints.operate.front_door.key_administration import front_door_stack
from inference_blueprints.serving.front_door.key_rules import key_rules
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_audit import Actor, AuditLog
from inference_contracts.door_key_acts import KeyActs, KeyRequest
from inference_contracts.door_key_table import AUDIT_BUCKET_OUTPUT, TABLE_OUTPUT, KeyTable
from inference_contracts.door_names import (
    LEDGER_TABLE_OUTPUT,
    USAGE_BUCKET_OUTPUT,
    USAGE_PREFIX,
    USAGE_STREAM_OUTPUT,
)
from inference_contracts.platform_keys import OWNER_TAG
from inference_contracts.usage_record import UsageRecord
from inference_local.emulator.emulator import Emulator
from inference_local.front_door.local_door import DoorTables

#: What the keys of a run are called.
_KEY_NAME = "local-run"
#: How a file of gzip begins (RFC 1952, 2.3.1).
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class DoorAccount:
    """The resources of a deployed front door.

    emulator: The emulator that the stacks are deployed to.
    outputs: Outputs of the stack of the front door.
    """

    emulator: Emulator
    outputs: Mapping[str, str]

    def tables(self) -> DoorTables:
        """Return what the replicas are told."""
        return DoorTables(
            keys=self.outputs.get(TABLE_OUTPUT, ""),
            ledger=self.outputs[LEDGER_TABLE_OUTPUT],
            usage_stream=self.outputs[USAGE_STREAM_OUTPUT],
            environment=self.emulator.environment(),
        )

    def make_keys(self, blueprint: Blueprint) -> dict[str, str]:
        """Make a key for each team, as `blueprints keys create` does, and return the secrets by team.

        Empty if the blueprint has no API keys.
        """
        rules = key_rules(blueprint)
        if rules is None:
            return {}
        acts = KeyActs(
            KeyTable(self.emulator.client("dynamodb"), self.outputs[TABLE_OUTPUT]),
            AuditLog(self.emulator.client("s3"), self.outputs[AUDIT_BUCKET_OUTPUT], rules.platform),
            rules,
            Actor(f"arn:aws:iam::{self.emulator.account}:root", "command"),
        )
        made = {
            team.name: acts.create(KeyRequest(team=team.name, name=_KEY_NAME), now=time.time())
            for team in rules.teams
        }
        return {team: change.secret for team, change in made.items() if change.secret is not None}

    def key_secret(self, owner: str) -> str:
        """Return the ARN of the secret with the keys of a program of the platform.

        owner: The program, as `KeyOwner.tag`.
        """
        pages = self.emulator.client("secretsmanager").get_paginator("list_secrets").paginate()
        wanted = {"Key": OWNER_TAG, "Value": owner}
        found: str = next(
            each["ARN"] for page in pages for each in page["SecretList"] if wanted in each.get("Tags", ())
        )
        return found

    def records(self) -> Iterator[UsageRecord]:
        """Yield the usage records that have been delivered."""
        s3, bucket = self.emulator.client("s3"), self.outputs[USAGE_BUCKET_OUTPUT]
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=USAGE_PREFIX):
            for found in page.get("Contents", ()):
                content = s3.get_object(Bucket=bucket, Key=found["Key"])["Body"].read()
                # Firehose compresses as its stream says; the emulator's does not.
                plain = gzip.decompress(content) if content.startswith(_GZIP) else content
                for line in plain.splitlines():
                    yield UsageRecord.from_json(line)


def find_account(emulator: Emulator, platform: str) -> DoorAccount:
    """Return the resources of a deployed front door.

    platform: ``metadata.name``.
    """
    client = emulator.client("cloudformation")
    (stack,) = client.describe_stacks(StackName=front_door_stack(platform))["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    return DoorAccount(emulator, outputs)
