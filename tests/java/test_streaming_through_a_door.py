"""The Flink job behind a real front door: its key, the ledger of its team, and a budget that is spent."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from kafka import KafkaProducer
from valkey import Valkey

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.serving.types.front_door import DoorCluster, DoorPlan
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.door_configuration import DoorBudget, DoorConfiguration, DoorTeam
from inference_contracts.door_headers import METRICS_PATH
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import KeyRecord, key_hash, new_key
from inference_contracts.platform_keys import way_model, write_keys
from inference_contracts.streaming_job import JobDoor
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.front_door.local_door import DoorTables, LocalDoor
from inference_local.processes.child_processes import ProcessGroup
from inference_local.streaming.job_processes import JobProcess, KafkaProcess, local_signal_store
from inference_local.streaming.streaming_clients import SignalWatch, read_dead_letters
from tests.runtime.front_door.clients.stand_in_model import INPUT_TOKENS, OUTPUT_TOKENS, StandInModel
from tests.runtime.front_door.conftest import FUTURE
from tests.runtime.front_door.conftest import emulator as emulator  # noqa: PLC0414 - a fixture
from tests.runtime.front_door.keys.key_tables import TABLE, record
from tests.runtime.front_door.policy_process import PRICES, UnixConnection, a_model

COST: Final = INPUT_TOKENS * PRICES.input_token + OUTPUT_TOKENS * PRICES.output_token
#: Longer than this test takes on any machine: no event becomes too old by itself.
MAX_AGE_SECONDS: Final = 3600
PATIENCE_SECONDS: Final = 120.0


def until(happened: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, f"still missing: {what}"
        time.sleep(0.1)


@dataclass
class DoorStream:
    """A streaming job, the front door that it calls, and what changes keys and budgets."""

    emulator: Emulator
    door: LocalDoor
    folder: Path
    """`door`, `folder`: The front door and its folder."""
    configuration: DoorConfiguration
    model: StandInModel
    job: StreamingJob
    kafka: KafkaProcess
    watch: SignalWatch
    secret: str
    flink: JobProcess
    sent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keys = KeyTable(self.emulator.client("dynamodb"), TABLE)
        self._producer: Any = KafkaProducer(bootstrap_servers=self.kafka.address, acks="all")
        self._key: KeyRecord | None = None

    @property
    def tag(self) -> str:
        """What the counters of the job's team begin with."""
        return f"door:{{{self.job.team}}}"

    def put_key(self) -> str:
        """Make a key, and revoke the one of before. Return the secret, which the job does not know yet."""
        made, before = new_key(), self._key
        self._key = self._keys.put(
            record(
                self.job.team,
                id=made.id,
                hashes=(key_hash(made.secret),),
                expires=FUTURE,
                models=(way_model("streaming", self.job.name),),
                caller="streaming",
            ),
            before=None,
        )
        if before:
            self._keys.put(replace(before, revoked=int(time.time())), before=before)
        return made.secret

    def tell(self, key: str) -> None:
        """Give the job a key, as a rotation does."""
        self.emulator.client("secretsmanager").put_secret_value(
            SecretId=self.secret, SecretString=write_keys({self.job.team: key, "other": "key"})
        )

    def limit(self, nano: int) -> None:
        """Set the budget of the team, and wait until all replicas have it."""
        budget = DoorBudget("team", self.job.team, nano_per_month=nano)
        self.door.write(replace(self.configuration, budgets=(budget,)))
        folders = [self.folder / name for name in self.door.replicas]
        until(
            lambda: all(
                (each / "state" / "last-good-configuration.json").read_bytes()
                == (each / "configuration.json").read_bytes()
                for each in folders
            ),
            "the budget at all replicas",
        )

    def refused(self, code: str) -> int:
        """Return the refused requests of all replicas."""
        found = 0
        for replica in self.door.replicas:
            connection = UnixConnection(str(self.door.store_socket.with_name(f"{replica}.sock")))
            connection.request("GET", METRICS_PATH)
            text = connection.getresponse().read().decode()
            connection.close()
            found += sum(
                map(int, re.findall(rf'^door_refused_total{{code="{code}"}} (\d+)$', text, re.MULTILINE))
            )
        return found

    def send(self, count: int, *, age_seconds: float = 0.0) -> list[str]:
        """Send an event of each of several sessions, and return the sessions."""
        sessions = [f"s-{len(self.sent) + number}" for number in range(count)]
        for session in sessions:
            event = dict(self.job.events.examples[0]) | {
                self.job.session.key: session,
                self.job.session.time: round((time.time() - age_seconds) * 1000),
            }
            if self.job.session.id:
                event[self.job.session.id] = session
            self._producer.send(self.job.events.topic, key=session.encode(), value=json.dumps(event).encode())
        self._producer.flush()
        self.sent += sessions
        return sessions

    def answered(self, sessions: list[str]) -> bool:
        """Return whether sessions have a signal."""
        return self.watch.visible().keys() >= set(sessions)

    def letters(self) -> list[dict[str, Any]]:
        """Return the dead letters."""
        return read_dead_letters(self.kafka.address, self.job)

    def spent(self) -> int:
        """Return what the ledger has charged to the team this month, with what is still reserved."""
        with Valkey(unix_socket_path=str(self.door.store_socket)) as store:
            month, reserved = store.hmget(self.tag, "M", "R")
        return int(month or 0) + int(reserved or 0)


@pytest.fixture
def stream(emulator: Emulator, tmp_path: Path) -> Iterator[DoorStream]:
    [job] = load_blueprint("streaming-g6e").blueprint.spec.streaming
    name = way_model("streaming", job.name)
    configuration = DoorConfiguration(
        platform="streaming",
        models=(a_model(name, caller="streaming", teams=(job.team,)),),
        teams=(DoorTeam(job.team, ()),),
        budgets=(DoorBudget("team", job.team, nano_per_month=10**12),),
        issuers=(),
        api_keys=False,
    )
    plan = DoorPlan(
        host_name="api.models.example.com",
        configuration=configuration,
        clusters=(DoorCluster("primary", "served", "main", 8000),),
        key_sets=(),
        replicas=3,
        vcpus=1.0,
        memory_mib=1024,
        largest_body_bytes=1024 * 1024,
    )
    secret = emulator.client("secretsmanager").create_secret(Name="door-keys-of-the-job", SecretString="{}")
    with (
        StandInModel() as model,
        ProcessGroup(grace_seconds=2) as processes,
        ValkeyServer(tmp_path / "valkey") as valkey,
        LocalDoor(
            plan,
            configuration,
            endpoints={"primary": model.port},
            tables=DoorTables(TABLE, "", "", emulator.environment()),
            directory=tmp_path / "door",
            processes=processes,
        ) as door,
    ):
        door.start(lambda _: None)
        kafka = KafkaProcess(tmp_path, processes)
        kafka.start_for(job, partitions=2)
        whole = job_configuration(
            job,
            platform="streaming",
            bootstrap_servers=kafka.address,
            kafka_authentication="none",
            endpoint_url=door.base_url.removesuffix("/v1"),
            store=local_signal_store(valkey.port),
            history_uri=(tmp_path / "history").as_uri(),
            door=JobDoor(model=name, team=job.team, secret=secret["ARN"]),
        )
        whole = replace(
            whole,
            # The model of this test answers with words.
            request=replace(whole.request, response_format=None),
            # No call of a busy machine takes too long.
            endpoint=replace(whole.endpoint, deadline_millis=60_000, max_age_millis=MAX_AGE_SECONDS * 1000),
        )
        flink = JobProcess(tmp_path, processes, whole, 1, environment=emulator.environment())
        flink.start()
        with SignalWatch(valkey.client, job.signal.name) as watch:
            yield DoorStream(
                emulator,
                door,
                tmp_path / "door",
                configuration,
                model,
                job,
                kafka,
                watch,
                secret["ARN"],
                flink,
            )


def test_a_job_behind_the_door_loses_nothing(stream: DoorStream) -> None:
    # While its team has no key, events wait and nothing is asked.
    first = stream.send(5)
    until(lambda: stream.flink.counter("events") == len(first), "events in the job")
    time.sleep(2)
    assert (stream.model.seen, stream.letters()) == ([], [])
    stream.tell(stream.put_key())
    until(lambda: stream.answered(first), "signals of the first events")

    # A key that is revoked while events come is replaced by the next one.
    next_key = stream.put_key()
    second = stream.send(5)

    def is_refused() -> bool:
        # The replicas know of it after a second or two, and answer until then.
        second.extend(stream.send(1))
        return stream.refused("invalid_api_key") > 0

    until(is_refused, "a refused key")
    second += stream.send(5)
    stream.tell(next_key)
    until(lambda: stream.answered(second), "signals of the events during the rotation")
    assert stream.letters() == []

    # The ledger has what the usage of the answers says, each once.
    assert len(stream.model.seen) == len(first) + len(second)
    until(lambda: stream.spent() == len(stream.model.seen) * COST, "the charge of all answers")

    # While the budget is spent, events wait. Those that are too old become dead letters, which say why.
    stream.limit(stream.spent() + 1)
    third = stream.send(4)
    until(lambda: stream.refused("insufficient_quota") > 0, "a refusal for the budget")
    old = stream.send(2, age_seconds=MAX_AGE_SECONDS - 5)
    until(lambda: len(stream.letters()) == len(old), "dead letters")
    assert {each["session"] for each in stream.letters()} == set(old)
    assert {each["reason"] for each in stream.letters()} == {"budget"}
    assert {each["request"]["model"] for each in stream.letters()} == {stream.job.model}
    assert "US dollars per month" in stream.letters()[0]["message"]
    stream.limit(10**12)
    until(lambda: stream.answered(third), "signals of the events that waited for the budget")
    assert len(stream.letters()) == len(old)
    assert {each["model"] for each in stream.model.seen} == {"served"}
