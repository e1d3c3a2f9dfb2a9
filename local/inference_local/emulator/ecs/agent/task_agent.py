"""The agent of all hosts: turns tasks into processes and tells the control plane what becomes of them.

Sources: task-metadata-endpoint-v4.html, ecs-gpu.html (NVIDIA_VISIBLE_DEVICES),
specifying-sensitive-data.html (secrets are read when a container starts), stopped-task-error-codes.html.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from inference_local.emulator.ecs.agent.agent_endpoint import AgentEndpoint, TaskFacts
from inference_local.emulator.ecs.agent.container_command import (
    PullError,
    StandInImages,
    TaskFolders,
    container_command,
    mount_folders,
    own_mounts,
)
from inference_local.emulator.ecs.agent.container_process import ContainerProcess
from inference_local.emulator.ecs.agent.host_devices import device_mounts, lose_gpu, missing_device
from inference_local.emulator.ecs.agent.log_driver import LogDriver, SendLines
from inference_local.emulator.ecs.agent.task_process import TaskProcess, TaskReports
from inference_local.emulator.ecs.control.cluster_state import (
    ContainerState,
    EcsInstance,
    EcsTask,
    Shape,
    StopCode,
    TaskEnd,
)
from inference_local.emulator.ecs.control.ecs_control import EcsControl
from inference_local.emulator.ecs.control.task_life import ProtectionError, protect, unprotect
from inference_local.emulator.ecs.network.task_networks import (
    SharedNetwork,
    TaskNetworkError,
    TaskNetworks,
)
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.isolation import with_mounts


class SecretError(Exception):
    """A secret of a container cannot be read."""


class DeviceError(Exception):
    """A host does not have a device that a container needs."""


@dataclass(frozen=True)
class AgentSettings:
    """How the agent runs tasks."""

    directory: Path
    """Folder for tasks, hosts and logs."""
    images: StandInImages
    """What stands for images."""
    environment: Mapping[str, str]
    """Variables of every container: the emulator's address, region and credentials."""
    secret: Callable[[str], str]
    """Returns the value of a ``valueFrom``, or raises `SecretError`."""
    arn: Callable[[str, str, str], str]
    """Returns the ARN of a cluster's resource: kind, cluster and id."""
    clock: Callable[[], float]
    """The control plane's clock."""
    wall_time: Callable[[float], float]
    """Turns a time of that clock into seconds since 1970."""
    speed: float
    """How much faster than time that clock is."""
    networks: Callable[[ProcessGroup], TaskNetworks] = lambda _: SharedNetwork()
    """Makes the networks of tasks, given the group of their processes."""
    send_log: SendLines = lambda _group, _stream, _lines: None
    """Sends lines of containers to a group and a stream of CloudWatch Logs."""


class TaskAgent:
    """Runs tasks. It is the `TaskRunner` of the control plane."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._processes = ProcessGroup()
        self._running: dict[str, TaskProcess] = {}
        self._tokens: dict[str, list[str]] = {}
        self.control: EcsControl | None = None
        self._processes.__enter__()
        self._networks = settings.networks(self._processes)
        self._logs = LogDriver(settings.send_log)
        self.endpoint = AgentEndpoint(self._networks.service_address)

    def close(self) -> None:
        """End every task."""
        every = list(self._running.values())
        for running in every:
            running.kill()
        for running in every:
            running.join()
        self._logs.close()
        self.endpoint.close()
        self._processes.stop()

    def pids(self, task: str) -> dict[str, int]:
        """Return the process ids of a task's containers."""
        running = self._running.get(task)
        return running.pids if running else {}

    def start(self, task: EcsTask, instance: EcsInstance | None) -> None:
        """Start a task's containers in a thread."""
        cluster = self._cluster_of(task)
        try:
            containers = [
                self._container(cluster, task, instance, each)
                for each in task.definition["containerDefinitions"]
            ]
        except PullError as error:
            self._fail(cluster, task, str(error))
            return
        except DeviceError as error:
            self._fail(cluster, task, f"CannotStartContainerError: {error}")
            return
        except (SecretError, TaskNetworkError) as error:
            self._fail(cluster, task, f"ResourceInitializationError: {error}")
            return
        control = self._control
        reports = TaskReports(
            lambda states: control.told_containers(cluster, task.identifier, states, self._settings.clock()),
            lambda states, end: self._ended(cluster, task, states, end),
        )
        running = TaskProcess(f"task-{task.identifier[:8]}", containers, reports)
        self._running[task.identifier] = running
        control.told_start(cluster, task.identifier)
        running.start()

    def stop(self, task: EcsTask) -> None:
        """Stop a task: SIGTERM, stopTimeout, SIGKILL."""
        if running := self._running.get(task.identifier):
            running.stop()

    def kill_host(self, tasks: list[EcsTask]) -> None:
        """Kill the processes of these tasks, and give up the network of their host."""
        for task in tasks:
            if running := self._running.pop(task.identifier, None):
                running.kill()
            self._forget(task)
            self._networks.close(task.instance or "")

    def cut_host(self, instance: str) -> None:
        """Cut a host off from all others. Its processes run on."""
        self._networks.cut(instance)

    def lose_gpu(self, instance: str) -> None:
        """Let a host lose a GPU."""
        lose_gpu(self._host_folder(instance))

    def _host_folder(self, host: str) -> Path:
        return self._settings.directory / "hosts" / host

    @property
    def _control(self) -> EcsControl:
        if self.control is None:
            raise RuntimeError("the agent has no control plane")
        return self.control

    def _container(
        self, cluster: str, task: EcsTask, instance: EcsInstance | None, container: Shape
    ) -> ContainerProcess:
        settings = self._settings
        image = settings.images.pull(container["image"])
        if path := missing_device(container, instance):
            # Docker's words (moby, ``daemon/oci_linux.go``, "error gathering device information").
            raise DeviceError(
                f'error gathering device information while adding custom device "{path}": no such file or '
                "directory"
            )
        overrides = {each["name"]: each for each in task.overrides.get("containerOverrides", ())}
        root = settings.directory / "tasks" / task.identifier
        host = instance.identifier if instance else f"fargate-{task.identifier}"
        folders = TaskFolders(root, self._host_folder(host), settings.directory / "shared")
        mounts = mount_folders(task.definition, container, folders)
        folder = root / container["name"]
        in_network = partial(self._networks.command, *_network_of(task, instance))
        in_network(())  # created here, so that a failure is one of the task
        own = own_mounts(container, mounts) if self._networks.has_mounts else []
        mounts = {path: place for path, place in mounts.items() if path not in {each.path for each in own}}
        if instance and self._networks.has_mounts:
            own += device_mounts(instance, folders.host)

        def in_task(words: Sequence[str]) -> list[str]:
            return in_network(with_mounts(words, own, folder) if own else words)

        command = container_command(
            container,
            overrides.get(container["name"], {}),
            image,
            given={**settings.environment, **self._given(cluster, task, container)},
            folder=folder,
            mounts=mounts,
        )
        log = (
            settings.directory
            / "logs"
            / (f"{task.definition['family']}-{task.identifier[:8]}-{container['name']}.log")
        )
        self._logs.follow(log, container, task.identifier)
        return ContainerProcess(
            container,
            command,
            mounts,
            in_network=in_task,
            processes=self._processes,
            log_path=log,
            speed=settings.speed,
        )

    def _given(self, cluster: str, task: EcsTask, container: Shape) -> dict[str, str]:
        """Return the variables that ECS adds, and the values of secrets."""
        token = f"{task.identifier}-{container['name']}"
        self._tokens.setdefault(task.identifier, []).append(token)
        facts = TaskFacts(
            lambda: self._container_document(cluster, task, container),
            lambda: self._task_document(cluster, task),
            lambda request: self._protection(cluster, task, request),
        )
        given = self.endpoint.add(token, facts)
        if any(need["type"] == "GPU" for need in container.get("resourceRequirements", ())):
            given["NVIDIA_VISIBLE_DEVICES"] = ",".join(task.gpu_ids)
        for each in container.get("secrets", ()):
            given[each["name"]] = self._settings.secret(each["valueFrom"])
        return given

    def _task_document(self, cluster: str, task: EcsTask) -> dict[str, Any]:
        arn = self._settings.arn
        return {
            "Cluster": arn("cluster", "", cluster),
            "TaskARN": arn("task", cluster, task.identifier),
            "Family": task.definition["family"],
            "Revision": str(task.definition.get("revision", 1)),
            "DesiredStatus": str(task.wanted),
            "KnownStatus": str(task.status),
            "LaunchType": "EC2" if task.instance else "FARGATE",
            "Containers": [
                self._container_document(cluster, task, each)
                for each in task.definition["containerDefinitions"]
            ],
        }

    def _container_document(self, cluster: str, task: EcsTask, container: Shape) -> dict[str, Any]:
        state = task.containers.get(container["name"], ContainerState())
        return {
            "Name": container["name"],
            "Image": container["image"],
            "Labels": {"com.amazonaws.ecs.task-arn": self._settings.arn("task", cluster, task.identifier)},
            "DesiredStatus": str(task.wanted),
            "KnownStatus": state.status,
            "Networks": [
                {
                    "NetworkMode": task.definition.get("networkMode", "bridge"),
                    "IPv4Addresses": [task.address],
                }
            ],
        }

    def _protection(self, cluster: str, task: EcsTask, request: Mapping[str, Any] | None) -> dict[str, Any]:
        arn = self._settings.arn("task", cluster, task.identifier)
        now = self._settings.clock()
        with self._control.lock:
            if request is not None:
                try:
                    if request.get("ProtectionEnabled"):
                        protect(task, request.get("ExpiresInMinutes"), now)
                    else:
                        unprotect(task)
                except ProtectionError as error:
                    return {"error": {"Arn": arn, "Code": str(error), "Message": f"{arn}: {error}"}}
            if not task.is_protected(now):
                return {"protection": {"ExpirationDate": None, "ProtectionEnabled": False, "TaskArn": arn}}
            end = self._settings.wall_time(task.protected_until or now)
        until = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"protection": {"ExpirationDate": until, "ProtectionEnabled": True, "TaskArn": arn}}

    def _fail(self, cluster: str, task: EcsTask, reason: str) -> None:
        self._forget(task)
        self._control.told_end(
            cluster, task.identifier, {}, self._settings.clock(), TaskEnd(StopCode.FAILED_TO_START, reason)
        )

    def _ended(self, cluster: str, task: EcsTask, states: Mapping[str, ContainerState], end: TaskEnd) -> None:
        self._running.pop(task.identifier, None)
        self._forget(task)
        self._control.told_end(cluster, task.identifier, states, self._settings.clock(), end)

    def _forget(self, task: EcsTask) -> None:
        self._networks.close(task.identifier)
        self._logs.forget(task.identifier)
        for token in self._tokens.pop(task.identifier, ()):
            self.endpoint.remove(token)

    def _cluster_of(self, task: EcsTask) -> str:
        return next(
            parts.state.name for parts in self._control.clusters() if task.identifier in parts.state.tasks
        )


def _network_of(task: EcsTask, instance: EcsInstance | None) -> tuple[str, str]:
    """Return id and address of what has the task's network: the task itself, or its host."""
    if instance is None or task.definition.get("networkMode") == "awsvpc":
        return task.identifier, task.address
    return instance.identifier, instance.address
