"""Functions of batch that are killed after each of their calls to AWS in turn, and called again."""

from __future__ import annotations

import copy
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from moto import mock_aws
from moto.stepfunctions import models as emulated_executions

from batch.jobs import identifiers
from inference_contracts import batch_keys
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import NOW

#: What Step Functions answers to calls that the emulation does not have.
_ANSWERS: dict[str, dict[str, Any]] = {
    "SendTaskSuccess": {},
    "UpdateMapRun": {},
    "Invoke": {"StatusCode": 202},
    "ListMapRuns": {
        "mapRuns": [{"mapRunArn": f"arn:aws:states:{resources.REGION}:1:mapRun:batch/Shards:run"}]
    },
}
#: The first of the numbers of what is there before.
_PREPARED = 2**20
CONFIGURATION = copy.deepcopy(resources.CONFIGURATION)
CONFIGURATION["queues"][0]["capacity"]["places"] = 8


class KilledError(Exception):
    """The process ended here."""


@dataclass
class Call:
    """A call to AWS."""

    operation: str
    parameters: dict[str, Any]


@dataclass
class Process:
    """What a function's process does, until it is killed."""

    last: int = 0
    """The call after which it is; none is 0."""
    refusal: Callable[[Call], Exception | None] = lambda _: None
    """Returns the error with which AWS refuses a call. None if it does not."""
    calls: list[Call] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def call(self, act: Callable[..., Any], client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        # One after the other: a condition and its write are one in AWS, and two in the emulation.
        with self._lock:
            if self.last and len(self.calls) >= self.last:
                raise KilledError
            if refused := self.refusal(Call(operation, parameters)):
                raise refused
            answer = _ANSWERS.get(operation)
            if answer is None:
                answer = act(client, operation, parameters)
            self.calls.append(Call(operation, parameters))
            if len(self.calls) == self.last:
                raise KilledError
            return answer


@dataclass(frozen=True)
class World:
    """What there is when functions have ended."""

    items: dict[str, dict[str, Any]]
    objects: dict[str, bytes]
    executions: list[Any]
    told: frozenset[str]


class Stage:
    """AWS, and processes that come and go."""

    def __init__(self) -> None:
        self._plain = BaseClient._make_api_call
        self._clients: dict[tuple[str, str, int], Any] = {}
        self.told: set[str] = set()

    def _made_once(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """Let a client be made once for all worlds."""

        def made(service: str, config: Any = None) -> Any:
            key = (make.__name__, service, id(config))
            if key not in self._clients:
                self._clients[key] = make(service, config=config)
            return self._clients[key]

        return made

    @contextmanager
    def world(self) -> Iterator[dict[str, str]]:
        """AWS as it is when a platform was just made, at one moment that lasts."""
        with mock_aws(), TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(boto3, "DEFAULT_SESSION", None)
            # Thousands of processes would each make clients of their own, which takes longer than their work.
            patch.setattr(boto3, "client", self._made_once(boto3.client))
            patch.setattr(boto3, "resource", self._made_once(boto3.resource))
            patch.setattr(time, "time", lambda: float(NOW))
            patch.setattr(time, "time_ns", lambda: NOW * 10**9)
            moment = datetime.fromtimestamp(NOW, UTC).replace(tzinfo=None)
            patch.setattr(emulated_executions, "utcnow", lambda: moment)
            environment = resources.create(Path(folder), CONFIGURATION)
            environment["BATCH_QUEUE_URLS"] = json.dumps({"qwen3-8b": "https://queue"})
            environment["BATCH_PLATFORM"] = "chat"
            environment["BATCH_CLOSE_FUNCTION"] = "close"
            for name, value in environment.items():
                patch.setenv(name, value)
            self.told.clear()
            with self._process(Process(), first=_PREPARED):
                yield environment

    def refused(
        self, function: Callable[[], Any], refusal: Callable[[Call], Exception | None]
    ) -> Exception | None:
        """Let a new process call a function while AWS refuses some calls, and return how it failed."""
        try:
            self.run(function, refusal=refusal)
        except Exception as error:  # noqa: BLE001 - the caller judges it
            return error
        return None

    def run(
        self,
        function: Callable[[], Any],
        *,
        last: int = 0,
        refusal: Callable[[Call], Exception | None] = lambda _: None,
    ) -> Process:
        """Let a new process call a function, and kill it after a call of its own."""
        process = Process(last, refusal)
        with self._process(process):
            try:
                function()
            except KilledError:
                assert last
            finally:
                self._note_told(process)
        return process

    def _note_told(self, process: Process) -> None:
        self.told |= {
            json.dumps(entry, sort_keys=True)
            for call in process.calls
            if call.operation == "PutEvents"
            for entry in call.parameters["Entries"]
        } | {
            json.dumps(call.parameters, sort_keys=True)
            for call in process.calls
            if call.operation in {"SendTaskSuccess", "UpdateMapRun", "Invoke"}
        }

    def look(self, environment: dict[str, str]) -> World:
        """Return what there is."""
        client = boto3.client("dynamodb")
        items = {
            json.dumps([table, item.get("id"), item.get("job"), item.get("shard")]): item
            for table in (resources.TABLE, resources.PROGRESS_TABLE)
            for item in client.scan(TableName=table)["Items"]
        }
        for item in items.values():
            # A run that is repeated may begin to measure a job to which the first one gave places.
            item.get("record", {}).get("M", {}).pop("measured", None)
        objects = {key: resources.read_object(key) for key in resources.list_keys("")}
        executions = sorted(resources.executions(environment), key=lambda each: str(each["name"]))
        return World(items, objects, executions, frozenset(self.told))

    @contextmanager
    def _process(self, process: Process, *, first: int = 1) -> Iterator[None]:
        """Let all calls be those of a process, which makes identifiers as every other does."""
        plain, numbers = self._plain, itertools.count(first)

        def call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            return process.call(plain, client, operation, parameters)

        made = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(numbers):032x}"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BaseClient, "_make_api_call", call)
            patch.setattr(identifiers, "uuid", made)
            patch.setattr(batch_keys, "uuid", made)
            forget()
            yield
            forget()


def forget() -> None:
    """Let the functions keep nothing of the process before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("batch.") and name.endswith(("handlers", "handler")):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
