"""The control plane with the real agent in this process: tasks are real processes, without the emulator."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from inference_local.emulator.ecs.agent.container_command import StandInImage, StandInImages
from inference_local.emulator.ecs.agent.task_agent import AgentSettings, SecretError, TaskAgent
from inference_local.emulator.ecs.control.cluster_state import EcsTask, HostPool, TaskStatus
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.ecs_control import EcsControl
from inference_local.emulator.ecs.control.host_scaling import HostSize

CLUSTER, POOL, IMAGE = "platform", "gpu", "registry.example/engine"
SPEED = 60.0
#: It ends a test that hangs.
_PATIENCE_SECONDS = 240.0
Found = TypeVar("Found")


class RealTasks:
    """One pool of hosts whose tasks run. Its clock runs sixty times faster than time."""

    def __init__(self, directory: Path, secrets: Mapping[str, str]) -> None:
        def secret(value_from: str) -> str:
            if value_from not in secrets:
                raise SecretError(f"unable to retrieve secret {value_from}")
            return secrets[value_from]

        self._began = time.monotonic()
        self.directory = directory
        self.agent = TaskAgent(
            AgentSettings(
                directory,
                StandInImages({IMAGE: StandInImage(environment={"FROM_IMAGE": "yes"})}),
                {"AWS_REGION": "us-west-2"},
                secret,
                lambda kind, cluster, name: f"arn:{kind}/{cluster}/{name}",
                self.clock,
                lambda seconds: seconds,
                SPEED,
            )
        )
        size = HostSize(16 * 1024, 64 * 1024, 4)
        self.control = EcsControl(Dependencies(self.agent, lambda _: size))
        self.agent.control = self.control
        request = {"name": POOL, "autoScalingGroupProvider": {"managedScaling": {"status": "ENABLED"}}}
        self.control.add_pool(CLUSTER, HostPool(POOL, request, ("g6e.12xlarge",), ("a",), maximum=4))
        self.state = self.control.cluster(CLUSTER).state
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self.agent.close()

    def clock(self) -> float:
        return (time.monotonic() - self._began) * SPEED

    def service(self, *containers: Mapping[str, Any], desired: int = 1, **keys: Any) -> None:
        arn = f"engine:{len(self.control.around.definitions) + 1}"
        self.control.around.definitions[arn] = {
            "taskDefinitionArn": arn,
            "family": "engine",
            "networkMode": "host",
            "volumes": [{"name": "cache", "host": {}}, {"name": "node", "host": {"sourcePath": "/mnt/node"}}],
            "containerDefinitions": list(containers),
        }
        strategy = [{"capacityProvider": POOL, "weight": 1}]
        request = {
            "taskDefinition": arn,
            "desiredCount": desired,
            "capacityProviderStrategy": strategy,
            **keys,
        }
        self.control.create_service(CLUSTER, "model", request, self.clock())

    def running(self, number: int = 1) -> list[EcsTask]:
        def look() -> list[EcsTask] | None:
            found = [
                task
                for task in list(self.state.tasks.values())
                if task.status is TaskStatus.RUNNING and task.is_live
            ]
            return found if len(found) == number else None

        return eventually(look)

    def stopped(self) -> EcsTask:
        return eventually(
            lambda: next(
                (task for task in list(self.state.tasks.values()) if task.status is TaskStatus.STOPPED), None
            )
        )

    def log(self, task: EcsTask, name: str = "main") -> str:
        path = self.directory / "logs" / f"engine-{task.identifier[:8]}-{name}.log"
        return path.read_text() if path.exists() else ""

    def _tick(self) -> None:
        while not self._ends.wait(0.02):
            self.control.tick(self.clock())


def shell(script: str, name: str = "main", **keys: Any) -> dict[str, Any]:
    return {"name": name, "image": f"{IMAGE}:1", "memory": 64, "command": ["/bin/sh", "-c", script], **keys}


def python(program: str, name: str = "main", **keys: Any) -> dict[str, Any]:
    return {**shell("", name, **keys), "command": [sys.executable, "-I", "-S", "-u", "-c", program]}


def eventually(happened: Callable[[], Found | None]) -> Found:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (found := happened()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return found
