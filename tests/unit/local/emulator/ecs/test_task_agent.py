"""The agent runs containers as processes as ECS documents it. Each test names the document."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference_local.emulator.ecs.control.cluster_state import Health, StopCode, TaskStatus
from tests.unit.local.emulator.ecs.agent_parts import RealTasks, eventually, shell

pytestmark = pytest.mark.clock

WAITS = "echo up; exec sleep 3600"
LOOP = "while :; do sleep 0.1; done"


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[RealTasks]:
    running = RealTasks(tmp_path, {"arn:secret:ca::": "a secret"})
    yield running
    running.close()


def ask(address: str, document: Mapping[str, object] | None = None) -> Any:
    """Ask the agent; with a document by PUT."""
    body, method = (None, "GET") if document is None else (json.dumps(document).encode(), "PUT")
    request = urllib.request.Request(address, data=body, method=method)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
        return json.load(answer)


def test_environment_secrets_gpus_and_metadata(tasks: RealTasks) -> None:
    # specifying-sensitive-data.html, ecs-gpu.html, task-metadata-endpoint-v4.html.
    tasks.service(
        shell(
            'echo "$PLAIN|$KEY|$FROM_IMAGE|$NVIDIA_VISIBLE_DEVICES|$ECS_CONTAINER_METADATA_URI_V4"; '
            "exec sleep 3600",
            environment=[{"name": "PLAIN", "value": "text"}],
            secrets=[{"name": "KEY", "valueFrom": "arn:secret:ca::"}],
            resourceRequirements=[{"type": "GPU", "value": "2"}],
        )
    )
    [task] = tasks.running()
    plain, key, image, gpus, metadata = eventually(lambda: tasks.log(task).strip()).split("|")
    assert (plain, key, image, gpus) == ("text", "a secret", "yes", ",".join(task.gpu_ids))
    assert len(task.gpu_ids) == 2
    assert ask(f"{metadata}/task")["TaskARN"] == f"arn:task/platform/{task.identifier}"
    assert ask(metadata)["Networks"][0]["IPv4Addresses"] == [task.address]


def test_a_secret_that_cannot_be_read_stops_the_task(tasks: RealTasks) -> None:
    # stopped-task-error-codes.html, ResourceInitializationError.
    tasks.service(shell(WAITS, secrets=[{"name": "KEY", "valueFrom": "arn:absent"}]))
    task = tasks.stopped()
    assert task.stop_code is StopCode.FAILED_TO_START
    assert (task.stopped_reason or "").startswith("ResourceInitializationError: unable to retrieve secret")


def test_an_image_that_nothing_stands_for_cannot_be_pulled(tasks: RealTasks) -> None:
    # stopped-task-error-codes.html, CannotPullContainerError.
    tasks.service(shell(WAITS) | {"image": "registry.example/absent:1"})
    assert (tasks.stopped().stopped_reason or "").startswith("CannotPullContainerError")


def test_a_killed_process_ends_the_task_which_is_replaced(tasks: RealTasks) -> None:
    # API ContainerDefinition, essential.
    tasks.service(shell(WAITS))
    [task] = tasks.running()
    os.kill(tasks.agent.pids(task.identifier)["main"], signal.SIGKILL)
    stopped = tasks.stopped()
    assert (stopped.stop_code, stopped.containers["main"].exit_code) == (StopCode.ESSENTIAL_EXITED, 137)
    assert tasks.running()[0] is not task


def test_sigterm_lets_a_container_drain(tasks: RealTasks) -> None:
    # API StopTask: "If the container handles the SIGTERM value gracefully … no SIGKILL value is sent".
    tasks.service(
        shell("trap 'echo drained; exit 0' TERM; echo up; while :; do sleep 0.1; done", stopTimeout=30)
    )
    [task] = tasks.running()
    eventually(lambda: "up" in tasks.log(task))
    tasks.control.stop_task("platform", task.identifier, "", tasks.clock())
    eventually(lambda: task.status is TaskStatus.STOPPED)
    assert tasks.log(task).split() == ["up", "drained"]
    assert (task.stop_code, task.containers["main"].exit_code) == (StopCode.USER, 0)


def test_sigkill_ends_a_container_after_its_stop_timeout(tasks: RealTasks) -> None:
    # API ContainerDefinition, stopTimeout.
    tasks.service(shell("trap '' TERM; echo up; while :; do sleep 0.1; done", stopTimeout=2))
    [task] = tasks.running()
    eventually(lambda: "up" in tasks.log(task))
    process = psutil.Process(tasks.agent.pids(task.identifier)["main"])
    tasks.control.stop_task("platform", task.identifier, "", tasks.clock())
    eventually(lambda: task.status is TaskStatus.STOPPED)
    assert not process.is_running()
    assert task.containers["main"].exit_code == 137
    assert (task.stopped_at or 0) - (task.stopping_at or 0) >= 2 * 60, (
        "two seconds of the process, not of the clock"
    )


def test_dependencies_start_in_order_and_stop_in_reverse(tasks: RealTasks) -> None:
    # API ContainerDependency: SUCCESS, START; "for container shutdown it is reversed".
    mount = [{"sourceVolume": "cache", "containerPath": "/cache"}]
    note = "trap 'echo end-of-{0} >> /cache/log; exit 0' TERM; echo {0} >> /cache/log; " + LOOP
    tasks.service(
        shell(
            note.format("main"),
            mountPoints=mount,
            dependsOn=[
                {"containerName": "fill", "condition": "SUCCESS"},
                {"containerName": "side", "condition": "START"},
            ],
        ),
        shell("sleep 0.3; echo filled >> /cache/log", "fill", essential=False, mountPoints=mount),
        shell(
            note.format("side"),
            "side",
            mountPoints=mount,
            dependsOn=[{"containerName": "fill", "condition": "COMPLETE"}],
        ),
    )
    [task] = tasks.running()
    log = tasks.directory / "tasks" / task.identifier / "volumes" / "cache" / "log"
    eventually(lambda: {"main", "side"} <= set(log.read_text().split()))
    tasks.control.stop_task("platform", task.identifier, "", tasks.clock())
    eventually(lambda: task.status is TaskStatus.STOPPED)
    lines = log.read_text().split()
    assert lines[0] == "filled"
    assert lines[-2:] == ["end-of-main", "end-of-side"]
    assert task.containers["fill"].exit_code == 0


@pytest.mark.parametrize(
    ("script", "keys", "condition"),
    [("exit 4", {}, "SUCCESS"), ("sleep 60", {"startTimeout": 1}, "COMPLETE")],
)
def test_a_dependency_that_fails_or_is_late_stops_the_task(
    tasks: RealTasks, script: str, keys: dict[str, int], condition: str
) -> None:
    # API ContainerDefinition, startTimeout: "containerA gives up and not start … the task … STOPPED".
    tasks.service(
        shell(WAITS, dependsOn=[{"containerName": "fill", "condition": condition}]),
        shell(script, "fill", essential=False, stopTimeout=2, **keys),
    )
    task = tasks.stopped()
    assert task.stop_code is StopCode.FAILED_TO_START
    assert f"fill did not reach {condition}" in (task.stopped_reason or "")
    assert tasks.log(task) == "", "the container that depends on it has not started"


def test_health_checks_make_a_task_healthy_and_unhealthy(tasks: RealTasks) -> None:
    # API HealthCheck: CMD-SHELL, interval, retries. Health decides about replacement.
    tasks.service(
        shell(
            'touch "$HOME/ok"; exec sleep 3600',
            stopTimeout=2,
            healthCheck={"command": ["CMD-SHELL", 'test -e "$HOME/ok"'], "interval": 10, "retries": 2},
        )
    )
    [task] = tasks.running()
    eventually(lambda: task.health is Health.HEALTHY)
    (tasks.directory / "tasks" / task.identifier / "main" / "ok").unlink()
    eventually(lambda: task.status is TaskStatus.STOPPED)
    assert "failed container health checks" in (task.stopped_reason or "")
    assert tasks.running()[0] is not task


def test_a_lost_host_ends_its_processes_and_its_tasks_run_elsewhere(tasks: RealTasks) -> None:
    tasks.service(shell(WAITS), desired=2)
    before = tasks.running(2)
    processes = [psutil.Process(tasks.agent.pids(task.identifier)["main"]) for task in before]
    tasks.control.kill_host("platform", before[0].instance or "", tasks.clock())
    eventually(lambda: not any(each.is_running() for each in processes))
    after = tasks.running(2)
    assert before[0].instance not in {task.instance for task in after}
    assert {task.stop_code for task in before} == {StopCode.TERMINATION}


def test_tasks_of_a_host_share_a_folder_of_it(tasks: RealTasks) -> None:
    # API HostVolumeProperties, sourcePath.
    mount = [{"sourceVolume": "node", "containerPath": "/node"}]
    tasks.service(shell("echo one >> /node/log; exec sleep 3600", mountPoints=mount), desired=2)
    [first, second] = tasks.running(2)
    assert first.instance == second.instance
    log = tasks.directory / "hosts" / (first.instance or "") / "mnt" / "node" / "log"
    eventually(lambda: log.read_text().split() == ["one", "one"])


def test_a_container_protects_its_task(tasks: RealTasks) -> None:
    # task-scale-in-protection-endpoint.html.
    tasks.service(shell('echo "$ECS_AGENT_URI"; exec sleep 3600'))
    [task] = tasks.running()
    address = eventually(lambda: tasks.log(task).strip()) + "/task-protection/v1/state"
    wanted = {"ProtectionEnabled": True, "ExpiresInMinutes": 60}
    assert ask(address, wanted)["protection"]["ProtectionEnabled"] is True
    assert task.is_protected(tasks.clock())
    with pytest.raises(urllib.error.HTTPError, match="400"):
        ask(address, {"ProtectionEnabled": True, "ExpiresInMinutes": 2881})
    ask(address, {"ProtectionEnabled": False})
    assert not task.is_protected(tasks.clock())
