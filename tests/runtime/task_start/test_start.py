"""A task is prepared and becomes the engine: addresses, blocks of ports, tags, signals."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from task_start.own_tags import signed_call
from task_start.port_block import BLOCKS, FIRST_PORT
from task_start.start_document import PORTS_PER_BLOCK, TaskStartError, read_document
from task_start.task_metadata import task_address

from tests.runtime.conftest import Pauses
from tests.runtime.task_start.conftest import ARN, Agent, Prepared, Start, TasksHere, wait_for_lock
from weights.s3_reader import Credentials

NewHost = Callable[[], str]
HOST: dict[str, Any] = {"network": "host", "ports": {"system": 0, "kv-events": 1}}


def port_of(prepared: Prepared) -> int:
    """Return the port in the first word of a command."""
    return int(prepared[0][0])


def test_command_variables_and_files_get_address_and_ports(
    here: TasksHere, agent: Agent, new_host: NewHost, tmp_path: Path
) -> None:
    agent.address = host = new_host()
    written = tmp_path / "folder/engine.yaml"
    document = {**HOST, "address": ["DYN_TCP_RPC_HOST"], "files": {str(written): "port: $(port:system)\n"}}
    words, variables = here.prepare(
        document,
        '{"endpoint": "tcp://*:$(port:kv-events)"}',
        "$(unknown) $HOME $(port",
        PORT="$(port:system)",
    )
    system = int(variables["PORT"])
    assert (system - FIRST_PORT) % PORTS_PER_BLOCK == 0
    assert words == [f'{{"endpoint": "tcp://*:{system + 1}"}}', "$(unknown) $HOME $(port"]
    assert variables["DYN_TCP_RPC_HOST"] == host
    assert "TASK_START" not in variables
    assert written.read_text() == f"port: {system}\n"
    known = json.loads((tmp_path / "task-ports.json").read_text())
    assert known == {"address": host, "ports": {"system": system, "kv-events": system + 1}}


@pytest.mark.clock
def test_the_process_is_the_engine_with_its_signals_and_its_exit_code(
    start: Start, agent: Agent, new_host: NewHost
) -> None:
    agent.address = new_host()
    task = start(HOST)
    assert task.heard()["pid"] == task.process.pid
    task.process.send_signal(signal.SIGTERM)
    assert task.end() == 7


@pytest.mark.clock
def test_processes_that_start_at_once_get_different_blocks_and_a_killed_one_frees_its_block(
    start: Start, agent: Agent, new_host: NewHost
) -> None:
    agent.address = new_host()
    tasks = [start(HOST, "$(port:system)") for _ in range(6)]
    ports = [int(task.heard()["words"][0]) for task in tasks]
    assert sorted(ports) == [FIRST_PORT + PORTS_PER_BLOCK * block for block in range(6)]
    tasks[3].process.kill()
    tasks[3].end()
    assert int(start(HOST, "$(port:system)").heard()["words"][0]) == ports[3]


def test_tasks_of_a_host_have_different_blocks_and_hosts_have_blocks_of_their_own(
    here: TasksHere, agent: Agent, new_host: NewHost
) -> None:
    agent.address = new_host()
    ports = [port_of(here.prepare(HOST, "$(port:system)")) for _ in range(2)]
    assert ports == [FIRST_PORT, FIRST_PORT + PORTS_PER_BLOCK]
    agent.address = new_host()
    assert port_of(here.prepare(HOST, "$(port:system)")) == FIRST_PORT


def test_a_block_with_a_port_that_another_program_has_is_not_taken(
    here: TasksHere, agent: Agent, new_host: NewHost
) -> None:
    agent.address = host = new_host()
    with socket.create_server((host, FIRST_PORT + 1)):
        port = port_of(here.prepare(HOST, "$(port:kv-events)"))
    assert port == FIRST_PORT + PORTS_PER_BLOCK + 1


def test_a_host_without_a_free_block_is_an_error(
    here: TasksHere, agent: Agent, new_host: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.address = host = new_host()
    with ExitStack() as holders:
        for block in range(BLOCKS):
            holder = holders.enter_context(socket.socket(socket.AF_UNIX))
            holder.bind(f"\0inference-blueprints/{host}/{block}")
        assert here.start(HOST) == 2
    assert f"all 64 blocks of ports of {host} are taken" in capsys.readouterr().err


def test_a_task_is_tagged_with_its_address_also_if_ecs_is_busy_first(
    here: TasksHere, agent: Agent, new_host: NewHost, pauses: Pauses
) -> None:
    agent.address = host = new_host()
    agent.refusals = 1
    port = port_of(here.prepare({**HOST, "tag": {"metrics": "system", "web": 8000}}, "$(port:system)"))
    assert len(pauses.seconds) == 1
    (_, (headers, body)) = agent.calls
    assert body == {
        "resourceArn": ARN,
        "tags": [
            {"key": "metrics", "value": f"{host}:{port}"},
            {"key": "web", "value": f"{host}:8000"},
        ],
    }
    sent = {name.lower(): value for name, value in headers.items()}
    assert sent["x-amz-target"] == "AmazonEC2ContainerServiceV20141113.TagResource"
    assert sent["x-amz-security-token"] == "token"


def test_a_task_without_tags_starts_and_says_so(
    here: TasksHere, agent: Agent, new_host: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.address = new_host()
    agent.refusals, agent.refusal = 9, (400, "AccessDeniedException")
    here.prepare({**HOST, "tag": {"metrics": "system"}})
    assert len(agent.calls) == 1
    assert "AccessDeniedException" in capsys.readouterr().err


def test_the_signature_is_that_of_botocore() -> None:
    now = datetime.now(UTC)
    url, body = "https://ecs.us-west-2.amazonaws.com/", b'{"resourceArn":"a"}'
    mine = signed_call(url, body, Credentials("AKID", "secret", "token"), "us-west-2", now)
    names = ("content-type", "x-amz-target")
    request = AWSRequest("POST", url, headers={name: mine[name] for name in names}, data=body)
    request.context["timestamp"] = mine["x-amz-date"]
    signer = SigV4Auth(BotocoreCredentials("AKID", "secret", "token"), "ecs", "us-west-2")
    request.headers["X-Amz-Date"] = mine["x-amz-date"]
    request.headers["X-Amz-Security-Token"] = "token"
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert mine["Authorization"].endswith(f"Signature={signer.signature(text, request)}")


@pytest.mark.clock
def test_a_task_that_stops_before_the_engine_starts_ends_at_once(start: Start, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    lock = tmp_path / "locks/weights--a"
    with lock.open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        task = start({"network": "host", "locks": {"folder": str(tmp_path), "entries": ["weights/a"]}})
        wait_for_lock(task.process)
        task.process.send_signal(signal.SIGTERM)
        assert task.end() == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ("{}", "network: missing"),
        (
            '{"network": "bridge", "port": {}}',
            "network: got 'bridge', must be one of host, awsvpc; port: unknown",
        ),
        ('{"network": "host", "ports": {"a": 32}}', "different positions from 0 to 31"),
        ('{"network": "host", "ports": {"a": 1, "b": 1}}', "different positions from 0 to 31"),
        ('{"network": "host", "tag": {"metrics": "system"}}', "'system' is not one of the ports"),
        ('{"network": "host", "efa": {"interfaces": 0}}', "efa: got"),
        ('{"network": "host", "locks": {"folder": "/node"}}', "locks: got"),
    ],
)
def test_a_wrong_document_is_an_error(text: str, message: str) -> None:
    with pytest.raises(TaskStartError, match=message):
        read_document(text)


def test_a_file_that_cannot_be_written_is_an_error(
    here: TasksHere, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.start({"network": "host", "files": {"/proc/no/such/file": ""}}) == 2
    assert "error: /proc/no/such/file cannot be written" in capsys.readouterr().err


def test_an_unknown_port_is_an_error_that_names_the_known_ones(
    here: TasksHere, agent: Agent, new_host: NewHost, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.address = new_host()
    assert here.start(HOST, "$(port:nixl)") == 2
    assert "$(port:nixl): no such port; the task has: kv-events, system" in capsys.readouterr().err


def test_a_command_that_does_not_exist_is_an_error(
    here: TasksHere, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.start({"network": "awsvpc"}, "no-such-engine") == 2
    assert capsys.readouterr().err == "error: no-such-engine: No such file or directory\n"


def test_a_task_with_an_interface_of_its_own_needs_the_agent(agent: Agent) -> None:
    agent.address = None
    with pytest.raises(TaskStartError, match="names no IPv4 address"):
        task_address("awsvpc", agent.variables())
    with pytest.raises(TaskStartError, match="names no IPv4 address"):
        task_address("awsvpc", {})


def test_a_task_on_its_host_has_the_address_of_the_route_to_the_vpc(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.address = None
    monkeypatch.setattr("task_start.task_metadata._RESOLVER", ("127.0.0.1", 53))
    assert task_address("host", agent.variables()) == "127.0.0.1"
