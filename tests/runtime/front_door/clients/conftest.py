"""A front door on this machine: three real Envoys and policies, a store, and a stand-in for a model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from inference_blueprints.serving.types.front_door import DoorCluster, DoorKeySet, DoorPlan
from inference_contracts.door_audit import Actor, AuditLog
from inference_contracts.door_configuration import DoorConfiguration, DoorIssuer, DoorTeam
from inference_contracts.door_headers import METRICS_PATH
from inference_contracts.door_key_acts import KeyActs, KeyModel, KeyRequest, KeyRules
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_names import USAGE_DAY, USAGE_PREFIX
from inference_local.emulator.emulator import Emulator
from inference_local.front_door.local_door import DoorTables, LocalDoor
from inference_local.processes.child_processes import ProcessGroup
from tests.runtime.front_door.clients.stand_in_model import StandInModel
from tests.runtime.front_door.clients.sts_tokens import ISSUER, TokenSigner
from tests.runtime.front_door.keys.key_tables import ACCOUNT, ADMIN, TABLE
from tests.runtime.front_door.policy_process import UnixConnection, a_model

AUDIENCE = "https://api.models.example.com"
AUDIT, USAGE, STREAM = "door-client-audit", "door-client-usage", "door-client-usage"
TEAMS = (
    DoorTeam("red", (f"arn:aws:iam::{ACCOUNT}:role/teams/Red",)),
    DoorTeam("blue", (f"arn:aws:iam::{ACCOUNT}:role/Blue",)),
)
MODELS = (a_model("public/model", aliases=("alias",)), a_model("only-red", teams=("red",)))


@dataclass
class RunningDoor:
    """A front door, and how its keys are administered."""

    door: LocalDoor
    model: StandInModel
    acts: KeyActs
    signer: TokenSigner
    emulator: Emulator

    def made_key(self, team: str = "red", **facts: Any) -> str:
        """Make a key, and return its secret when all replicas know it."""
        request = KeyRequest(**{"team": team, "name": f"test {time.time_ns()}", **facts})
        secret = self.acts.create(request, now=time.time()).secret
        assert secret is not None
        self.wait_for_keys()
        return secret

    def wait_for_keys(self) -> None:
        """Wait until all replicas have read the keys again. Asking them with a key would count wrong ones."""
        began = time.monotonic()
        for name in self.door.replicas:
            path = self.door.store_socket.with_name(f"{name}.sock")
            self.wait_until(lambda path=path: _keys_age(path) < time.monotonic() - began)  # type: ignore[misc]

    def client(self, secret: str) -> OpenAI:
        """Return the official client with a key or a token."""
        return OpenAI(base_url=self.door.base_url, api_key=secret, max_retries=0, timeout=20)

    def statuses(self, secret: str, connections: int = 12) -> set[int]:
        """Return how connections, which the kernel spreads over the replicas, are answered."""
        found = set()
        for _ in range(connections):
            with self.client(secret) as client:
                raw = client.models.with_raw_response
                try:
                    found.add(raw.list().status_code)
                except Exception as error:  # noqa: BLE001 - of any class of the client
                    found.add(getattr(error, "status_code", 0))
        return found

    def wait_until(self, holds: Callable[[], bool], seconds: float = 20) -> float:
        """Ask again and again until it holds. Return the seconds until then."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < seconds
            time.sleep(0.2)
        return time.monotonic() - began


def _keys_age(policy_socket: Path) -> float:
    """Return the seconds since a replica has read the keys."""
    connection = UnixConnection(str(policy_socket))
    connection.request("GET", METRICS_PATH)
    text = connection.getresponse().read().decode()
    connection.close()
    [age] = re.findall(r"^door_key_snapshot_age_seconds (\S+)$", text, re.MULTILINE)
    return float(age)


def _rules() -> KeyRules:
    models = tuple(KeyModel(each.name, each.teams) for each in MODELS)
    return KeyRules(platform="clients", teams=TEAMS, models=models, max_days=30, rotation_hours=1)


def _usage_stream(emulator: Emulator) -> None:
    """Make the stream of usage records, as the stack does."""
    emulator.client("firehose").create_delivery_stream(
        DeliveryStreamName=STREAM,
        DeliveryStreamType="DirectPut",
        ExtendedS3DestinationConfiguration={
            "RoleARN": f"arn:aws:iam::{ACCOUNT}:role/firehose",
            "BucketARN": f"arn:aws:s3:::{USAGE}",
            "Prefix": f"{USAGE_PREFIX}{USAGE_DAY}=!{{timestamp:yyyy-MM-dd}}/",
            "ErrorOutputPrefix": "errors/",
        },
    )


@pytest.fixture(scope="session")
def door(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    for bucket in (AUDIT, USAGE):
        emulator.client("s3").create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
        )
    _usage_stream(emulator)
    signer = TokenSigner()
    configuration = DoorConfiguration(
        platform="clients",
        models=MODELS,
        teams=TEAMS,
        budgets=(),
        issuers=(DoorIssuer(ISSUER, AUDIENCE, "sub", is_sts=True),),
        api_keys=True,
    )
    plan = DoorPlan(
        host_name="api.models.example.com",
        configuration=configuration,
        clusters=(DoorCluster("primary", "m", "main", 8000),),
        key_sets=(DoorKeySet(ISSUER, AUDIENCE, None, signer.key_set()),),
        replicas=3,
        vcpus=1.0,
        memory_mib=1024,
        largest_body_bytes=1024 * 1024,
    )
    table = KeyTable(emulator.client("dynamodb"), TABLE)
    audit = AuditLog(emulator.client("s3"), AUDIT, "clients")
    acts = KeyActs(table, audit, _rules(), Actor(ADMIN, "command"))
    folder: Path = tmp_path_factory.mktemp("door-clients")
    with StandInModel() as model, ProcessGroup(grace_seconds=2) as processes:
        local = LocalDoor(
            plan,
            configuration,
            endpoints={"primary": model.port},
            tables=DoorTables(TABLE, "", STREAM, emulator.environment()),
            directory=folder,
            processes=processes,
        )
        with local:
            local.start(lambda _: None)
            yield RunningDoor(local, model, acts, signer, emulator)
