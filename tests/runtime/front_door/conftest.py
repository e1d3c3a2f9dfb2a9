"""A store and an emulator that the tests of the policy share, and a key of each team."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from inference_contracts import door_names
from inference_contracts.door_configuration import DoorConfiguration
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import key_hash, new_key
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from tests.runtime.front_door.keys.key_tables import REGION, TABLE, TABLE_PROPERTIES, record
from tests.runtime.front_door.policy_process import PolicyProcess, wait_for

FUTURE = 4_000_000_000


@dataclass
class Platform:
    """What replicas of the front door share."""

    emulator: Emulator
    store: ValkeyServer
    keys: KeyTable

    def new_key(self, team: str = "red", **facts: Any) -> str:
        """Make a key, and return its secret."""
        made = new_key()
        whole = {"id": made.id, "hashes": (key_hash(made.secret),), "expires": FUTURE, **facts}
        self.keys.put(record(team, **whole), before=None)
        return made.secret

    def known_key(self, team: str, *policies: PolicyProcess, **facts: Any) -> str:
        """Make a key, and return its secret when policies know it."""
        secret = self.new_key(team, **facts)
        for policy in policies:
            # Asked rarely: many wrong keys of an address are refused otherwise.
            wait_for(partial(_knows, policy, secret), pause=0.25)
        return secret

    def usage_stream(self) -> tuple[str, str]:
        """Make a bucket and a stream that delivers to it, and return their names."""
        bucket = stream = f"door-usage-{secrets.token_hex(4)}"
        self.emulator.client("s3").create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        self.emulator.client("firehose").create_delivery_stream(
            DeliveryStreamName=stream,
            ExtendedS3DestinationConfiguration={
                "BucketARN": f"arn:aws:s3:::{bucket}",
                # As `usage_stream` of the stack has them.
                "Prefix": f"{door_names.USAGE_PREFIX}{door_names.USAGE_DAY}=!{{timestamp:yyyy-MM-dd}}/",
                "ErrorOutputPrefix": door_names.USAGE_ERRORS_PREFIX,
                "RoleARN": "arn:aws:iam::123456789012:role/usage",
            },
        )
        return bucket, stream

    def settings(self) -> dict[str, Any]:
        """Settings of a policy."""
        return {
            "environment": self.emulator.environment(),
            "store_host": "127.0.0.1",
            "store_port": self.store.port,
            "keys_table": TABLE,
        }


def _knows(policy: PolicyProcess, secret: str) -> bool:
    return policy.ask(secret, model="none").status == 404


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("door-emulator"), region=REGION) as running:
        running.client("dynamodb").create_table(**TABLE_PROPERTIES)
        yield running


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("door-store")) as started:
        yield started


@pytest.fixture
def platform(emulator: Emulator, shared_store: ValkeyServer) -> Platform:
    """An empty store, and a table of keys."""
    with shared_store.client() as client:
        client.flushall()
    return Platform(emulator, shared_store, KeyTable(emulator.client("dynamodb"), TABLE))


class StartPolicy(Protocol):
    """Starts a policy, which ends with the test."""

    def __call__(self, name: str, configured: DoorConfiguration, /, **settings: Any) -> PolicyProcess: ...


@pytest.fixture
def start_policy(platform: Platform, tmp_path: Path) -> Iterator[StartPolicy]:
    started: list[PolicyProcess] = []

    def start(name: str, configured: DoorConfiguration, /, **settings: Any) -> PolicyProcess:
        started.append(PolicyProcess(tmp_path / name, configured, **{**platform.settings(), **settings}))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def ledger_table(emulator: Emulator) -> Iterator[str]:
    """An empty table of checkpoints."""
    client, name = emulator.client("dynamodb"), "door-ledger"
    keys = ((door_names.SLOT_ATTRIBUTE, "HASH"), (door_names.ACCOUNT_ATTRIBUTE, "RANGE"))
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": each, "KeyType": kind} for each, kind in keys],
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each, _ in keys],
    )
    yield name
    client.delete_table(TableName=name)
