"""A task is prepared and becomes the engine: addresses, blocks of ports, tags, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
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

from inference_blueprints.resources import root
from tests.runtime.task_start.conftest import ARN, Agent, Start
from weights.s3_reader import Credentials

HOST: dict[str, Any] = {"network": "host", "ports": {"system": 0, "kv-events": 1}}


def test_command_variables_and_files_get_address_and_ports(
    start: Start, agent: Agent, tmp_path: Path
) -> None:
    agent.address = "127.0.0.77"
    written = tmp_path / "folder/engine.yaml"
    document = {**HOST, "address": ["DYN_TCP_RPC_HOST"], "files": {str(written): "port: $(port:system)\n"}}
    heard = start(
        document,
        '{"endpoint": "tcp://*:$(port:kv-events)"}',
        "$(unknown) $HOME $(port",
        PORT="$(port:system)",
    ).heard()
    system = int(heard["variables"]["PORT"])
    assert (system - FIRST_PORT) % PORTS_PER_BLOCK == 0
    assert heard["words"] == [f'{{"endpoint": "tcp://*:{system + 1}"}}', "$(unknown) $HOME $(port"]
    assert heard["variables"]["DYN_TCP_RPC_HOST"] == "127.0.0.77"
    assert "TASK_START" not in heard["variables"]
    assert written.read_text() == f"port: {system}\n"
    known = json.loads((tmp_path / "task-0/task-ports.json").read_text())
    assert known == {"address": "127.0.0.77", "ports": {"system": system, "kv-events": system + 1}}


def test_the_process_is_the_engine_with_its_signals_and_its_exit_code(start: Start) -> None:
    task = start(HOST)
    assert task.heard()["pid"] == task.process.pid
    task.process.send_signal(signal.SIGTERM)
    assert task.end() == 7


def test_processes_that_start_at_once_get_different_blocks_and_a_killed_one_frees_its_block(
    start: Start, agent: Agent
) -> None:
    agent.address = "127.0.0.78"
    tasks = [start(HOST, "$(port:system)") for _ in range(6)]
    ports = [int(task.heard()["words"][0]) for task in tasks]
    assert sorted(ports) == [FIRST_PORT + PORTS_PER_BLOCK * block for block in range(6)]
    tasks[3].process.kill()
    tasks[3].end()
    assert int(start(HOST, "$(port:system)").heard()["words"][0]) == ports[3]


def test_hosts_have_blocks_of_their_own(start: Start, agent: Agent) -> None:
    agent.address = "127.0.0.79"
    first = start(HOST, "$(port:system)").heard()
    agent.address = "127.0.0.80"
    assert start(HOST, "$(port:system)").heard()["words"] == first["words"]


def test_a_block_with_a_port_that_another_program_has_is_not_taken(start: Start, agent: Agent) -> None:
    agent.address = "127.0.0.81"
    with socket.create_server(("127.0.0.81", FIRST_PORT + 1)):
        heard = start(HOST, "$(port:kv-events)").heard()
    assert heard["words"] == [str(FIRST_PORT + PORTS_PER_BLOCK + 1)]


def test_a_host_without_a_free_block_is_an_error(start: Start, agent: Agent) -> None:
    agent.address = "127.0.0.82"
    holders = [socket.socket(socket.AF_UNIX) for _ in range(BLOCKS)]
    for block, holder in enumerate(holders):
        holder.bind(f"\0inference-blueprints/127.0.0.82/{block}")
    task = start(HOST)
    assert task.end() == 2
    assert "all 64 blocks of ports of 127.0.0.82 are taken" in task.errors()
    for holder in holders:
        holder.close()


def test_a_task_is_tagged_with_its_address_also_if_ecs_is_busy_first(start: Start, agent: Agent) -> None:
    agent.refusals = 1
    heard = start({**HOST, "tag": {"metrics": "system", "web": 8000}}, "$(port:system)").heard()
    (_, (headers, body)) = agent.calls
    assert body == {
        "resourceArn": ARN,
        "tags": [
            {"key": "metrics", "value": f"127.0.0.1:{heard['words'][0]}"},
            {"key": "web", "value": "127.0.0.1:8000"},
        ],
    }
    sent = {name.lower(): value for name, value in headers.items()}
    assert sent["x-amz-target"] == "AmazonEC2ContainerServiceV20141113.TagResource"
    assert sent["x-amz-security-token"] == "token"


def test_a_task_without_tags_starts_and_says_so(start: Start, agent: Agent) -> None:
    agent.refusals, agent.refusal = 9, (400, "AccessDeniedException")
    task = start({**HOST, "tag": {"metrics": "system"}})
    task.heard()
    assert len(agent.calls) == 1
    task.process.kill()
    assert "AccessDeniedException" in task.errors()


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


def test_a_task_that_stops_before_the_engine_starts_ends_at_once(start: Start, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    lock = tmp_path / "locks/weights--a"
    holder = subprocess.Popen(
        ["flock", "-x", str(lock), "sh", "-c", "echo held; exec sleep 60"], stdout=subprocess.PIPE
    )
    assert holder.stdout
    holder.stdout.readline()
    task = start({"network": "host", "locks": {"folder": str(tmp_path), "entries": ["weights/a"]}})
    with pytest.raises(subprocess.TimeoutExpired):
        task.process.wait(1.0)
    task.process.send_signal(signal.SIGTERM)
    assert task.end() == 128 + signal.SIGTERM
    holder.kill()
    holder.communicate()


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


def test_a_file_that_cannot_be_written_is_an_error(start: Start) -> None:
    task = start({"network": "host", "files": {"/proc/no/such/file": ""}})
    assert task.end() == 2
    assert "error: /proc/no/such/file cannot be written" in task.errors()


def test_an_unknown_port_is_an_error_that_names_the_known_ones(start: Start) -> None:
    task = start(HOST, "$(port:nixl)")
    assert task.end() == 2
    assert "$(port:nixl): no such port; the task has: kv-events, system" in task.errors()


def test_a_command_that_does_not_exist_is_an_error(agent: Agent, tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root() / "runtime"), "TMPDIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-m", "task_start", "--", "no-such-engine"],
        env={**variables, **agent.variables(), "TASK_START": '{"network": "awsvpc"}'},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "error: no-such-engine: No such file or directory\n"


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
