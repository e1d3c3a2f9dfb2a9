"""A control plane with an agent that the test plays, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference_local.emulator.ecs.control.cluster_state import (
    ContainerState,
    EcsInstance,
    EcsService,
    EcsTask,
    Health,
    HostPool,
    StopCode,
    TaskEnd,
    TaskStatus,
)
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.ecs_control import EcsControl
from inference_local.emulator.ecs.control.host_scaling import HostSize

CLUSTER = "platform"
POOL = "gpu"
SIZE = HostSize(cpu=16 * 1024, memory_mib=128 * 1024, gpus=4)


class PlayedRunner:
    """Notes what the control plane asks of the agent."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.stopped: list[str] = []

    def start(self, task: EcsTask, _: EcsInstance | None) -> None:
        self.started.append(task.identifier)

    def stop(self, task: EcsTask) -> None:
        self.stopped.append(task.identifier)

    def kill_host(self, tasks: list[EcsTask]) -> None:
        pass


class PlayedTargets:
    """Target groups whose state the test sets."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, str, int]] = []
        self.healthy = False
        self.unused = False

    def register(self, group: str, address: str, port: int, /) -> None:
        self.registered.append((group, address, port))

    def deregister(self, *_: object) -> None:
        self.registered.clear()

    def is_healthy(self, *_: object) -> bool:
        return self.healthy

    def is_unused(self, *_: object) -> bool:
        return self.unused


def container(**keys: Any) -> dict[str, Any]:
    return {"name": "main", "image": "engine", "essential": True, "cpu": 1024, "memory": 1024, **keys}


def definition(arn: str = "engine:1", **container_keys: Any) -> dict[str, Any]:
    return {
        "taskDefinitionArn": arn,
        "family": arn.partition(":")[0],
        "networkMode": "host",
        "containerDefinitions": [container(**container_keys)],
    }


CHECK = {"command": ["CMD", "true"], "interval": 10, "retries": 3, "startPeriod": 0}


class Played:
    """One cluster with one pool of hosts."""

    def __init__(self, hosts: int = 4, *, minimum: int = 0, pool: Mapping[str, Any] | None = None) -> None:
        self.runner = PlayedRunner()
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        around = Dependencies(
            self.runner, lambda _: SIZE, tell=lambda kind, detail: self.told.append((kind, detail))
        )
        self.control = EcsControl(around)
        self.now = 0.0
        settings = {"managedScaling": {"status": "ENABLED"}}
        request = pool or {"name": POOL, "autoScalingGroupProvider": settings}
        self.control.add_pool(
            CLUSTER, HostPool(POOL, request, ("g6e.12xlarge",), ("a", "b"), minimum=minimum, maximum=hosts)
        )
        self.state = self.control.cluster(CLUSTER).state

    def service(self, desired: int, document: Mapping[str, Any] | None = None, **request: Any) -> EcsService:
        document = document or definition()
        self.control.around.definitions[document["taskDefinitionArn"]] = document
        given = {
            "taskDefinition": document["taskDefinitionArn"],
            "desiredCount": desired,
            "capacityProviderStrategy": [{"capacityProvider": POOL, "weight": 1}],
            **request,
        }
        return self.control.create_service(CLUSTER, "model", given, self.now)

    def deploy(self, document: Mapping[str, Any]) -> None:
        self.control.around.definitions[document["taskDefinitionArn"]] = document
        self.change(taskDefinition=document["taskDefinitionArn"])

    def change(self, **changes: Any) -> None:
        self.control.update_service(CLUSTER, "model", changes, self.now)

    def wait(self, seconds: float = 0.0) -> None:
        """Move the clock on by steps of a second at most."""
        end = self.now + seconds
        while True:
            self.control.tick(self.now)
            if self.now >= end:
                return
            self.now = min(end, self.now + 1)

    def run(self, task: EcsTask, health: Health = Health.UNKNOWN) -> None:
        states = {"main": ContainerState("RUNNING", health)}
        self.control.told_containers(CLUSTER, task.identifier, states, self.now)

    def run_all(self, health: Health = Health.UNKNOWN, rounds: int = 6) -> None:
        """Let every task start, and every stop end, until nothing moves."""
        for _ in range(rounds):
            self.wait(1)
            for task in self.tasks():
                if task.address and task.is_live:
                    self.run(task, health)
                if task.status is TaskStatus.STOPPING:
                    self.end(task, 0)
        self.wait()

    def end(self, task: EcsTask, code: int, stop: StopCode = StopCode.ESSENTIAL_EXITED) -> None:
        states = {"main": ContainerState("STOPPED", exit_code=code)}
        end = TaskEnd(stop, "Essential container in task exited")
        self.control.told_end(CLUSTER, task.identifier, states, self.now, end)

    def tasks(self) -> list[EcsTask]:
        return self.state.tasks_of("model")

    def running(self) -> list[EcsTask]:
        return [task for task in self.tasks() if task.status is TaskStatus.RUNNING and task.is_live]

    def messages(self) -> list[str]:
        return [message for _, _, message in self.state.services["model"].events]
