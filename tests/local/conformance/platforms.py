"""The same blueprint as it runs on EKS and on ECS, with what the cases do to both."""

from __future__ import annotations

import json
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import openai
import yaml

from inference_blueprints import resources
from inference_blueprints.loading import LoadedBlueprint, load_blueprint
from inference_blueprints.serving.nodes.ecs_capacity import managed_pools
from inference_blueprints.serving.plan import build_plan
from inference_contracts.ecs_names import service_name
from inference_local.ecs_platform.ecs_platform import EcsPlatform
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.simulated_kind import SimulatedKind
from tests.local.conformance.task_prometheus import asked_inside

_PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 0.5
# Of a worker on EKS; a task on ECS has that of its definition.
_FINISH_SECONDS = 20


@dataclass(frozen=True)
class ConformingFile:
    """A shipped blueprint that both platforms run, with two workers of each role."""

    blueprint: str
    model: str
    roles: tuple[str, ...]
    """Roles of its workers."""
    scaled: str
    """Role whose workers become fewer."""
    replaced: str
    """Role whose workers are killed and rolled out."""
    context: int = 13_312

    @property
    def release(self) -> str:
        return f"{self.model}-main"

    @property
    def workers(self) -> int:
        """Number of workers of all roles."""
        return WORKERS * len(self.roles)

    def change(self, content: dict[str, Any]) -> None:
        """Give every role of separate prefill and decode its two workers."""
        [model] = content["spec"]["models"]
        for role in model["deployments"][0].get("disaggregated", {}).values():
            role["replicas"] = WORKERS


#: Workers of each role.
WORKERS = 2
AGGREGATED = ConformingFile("ecs-g6e", "qwen3-8b", ("worker",), "worker", "worker")
DISAGGREGATED = ConformingFile(
    "ecs-p5en-disaggregated", "qwen3-32b", ("prefill", "decode"), scaled="prefill", replaced="decode"
)


def eventually(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (result := happened()):
        assert time.monotonic() < deadline, f"no {what} in time"
        time.sleep(_LOOK_SECONDS)
    return result


def as_shipped(_content: dict[str, Any]) -> None:
    """Change nothing of a blueprint."""


def blueprint(
    cluster: Mapping[str, Any],
    directory: Path,
    change: Callable[[dict[str, Any]], None],
    file: ConformingFile = AGGREGATED,
) -> LoadedBlueprint:
    """Return a shipped blueprint with another cluster and a change, from a file in a folder."""
    content = yaml.safe_load((resources.blueprints_directory() / f"{file.blueprint}.yaml").read_text())
    content["spec"]["cluster"] = cluster
    file.change(content)
    change(content)
    path = directory / "blueprint.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_blueprint(str(path))


class StreamedPlatform(Protocol):
    """A platform to which clients stream."""

    file: ConformingFile
    """What it runs."""
    url: str
    """Address of its load balancer, without ``/v1``."""
    headers: Mapping[str, str]
    """Headers of every request."""


class ConformingPlatform(StreamedPlatform, ABC):
    """A running platform with one model."""

    @property
    def client(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.url}/v1", api_key="none", max_retries=0, default_headers=self.headers
        )

    @abstractmethod
    def kill_worker(self) -> None:
        """Kill one worker of the role `replaced` without notice."""

    @abstractmethod
    def replaced(self) -> None:
        """Wait until a killed worker is replaced."""

    @abstractmethod
    def scale(self, workers: int) -> None:
        """Change the number of workers of the role `scaled`, and wait until no other of it runs."""

    @abstractmethod
    def roll_out(self) -> None:
        """Replace every worker of the role `replaced` by a new one, in turn, and wait for the end."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


class EksRendering(ConformingPlatform):
    """The plan's processes, started as its pods."""

    def __init__(
        self,
        directory: Path,
        change: Callable[[dict[str, Any]], None] = as_shipped,
        *,
        file: ConformingFile = AGGREGATED,
    ) -> None:
        self.file = file
        loaded = self.loaded = blueprint({"eks": {"version": "1.36"}}, directory, change, file)
        self.processes = ProcessGroup()
        self.processes.__enter__()
        self.serving = LocalServing(
            build_plan(loaded.blueprint),
            loaded.blueprint,
            directory / "serving",
            self.processes,
            engines=SimulatedKind(loaded.blueprint, finish_seconds=_FINISH_SECONDS),
        )
        [endpoint] = self.serving.start(lambda _: None)
        self.url, self.headers = endpoint.base_url.removesuffix("/v1"), {}
        [self.deployment] = self.serving.deployments

    def kill_worker(self) -> None:
        self.serving.kill(self.running(self.file.replaced)[0])

    def replaced(self) -> None:
        self.serving.replace_killed(lambda _: None)

    def scale(self, workers: int) -> None:
        running = self.running(self.file.scaled)
        for each in running[workers:]:
            self.serving.workers.end(each)
        eventually(
            lambda: not any(self.serving.workers.is_ending(each) for each in running), "end of workers"
        )
        for each in self._placed(self.file.scaled)[len(running) : workers]:
            self.serving.workers.begin(each)
        self._registered()

    def roll_out(self) -> None:
        for each in self.running(self.file.replaced):
            self.serving.workers.end(each)
            eventually(lambda each=each: not self.serving.workers.is_ending(each), "end")  # type: ignore[misc]
            self.serving.workers.begin(each)
            self._registered()

    def close(self) -> None:
        self.processes.stop()

    def running(self, role: str | None = None) -> list[Any]:
        """Return the workers of a role that run, or of all."""
        return [each for each in self._placed(role) if self.serving.workers.runs(each)]

    def _placed(self, role: str | None) -> list[Any]:
        every = self.serving.workers.of(self.deployment)
        return [each for each in every if role in (None, each.kind.name)]

    def _registered(self) -> None:
        """Wait until the frontends know the workers that run, and no others."""
        workers = len(self.running())
        eventually(
            lambda: all(count == workers for count in self.serving.registered(self.deployment)),
            f"{workers} registered workers",
        )


def worker_service(loaded: LoadedBlueprint, release: str, role: str) -> str:
    """Return the name of a service of workers, whose file has pools of one kind of host."""
    managed = managed_pools(loaded.blueprint, build_plan(loaded.blueprint))
    return service_name(release, role, managed=bool(managed))


class EcsRendering(ConformingPlatform):
    """The rendered stacks in the emulator, whose agent runs the tasks."""

    def __init__(
        self,
        directory: Path,
        report: Callable[[str], None],
        change: Callable[[dict[str, Any]], None] = as_shipped,
        *,
        workers: int = WORKERS,
        file: ConformingFile = AGGREGATED,
    ) -> None:
        self.file = file
        #: Workers of the roles that are never scaled.
        self._others = WORKERS * (len(file.roles) - 1)
        loaded = self.loaded = blueprint({"ecs": {}}, directory, change, file)
        self.service = worker_service(loaded, file.release, file.replaced)
        self._scaled = worker_service(loaded, file.release, file.scaled)
        run = directory / "run"
        run.mkdir()
        self.platform = EcsPlatform(loaded, build_plan(loaded.blueprint), run, report=report)
        self.platform.__enter__()
        self.url = self.platform.emulator.models_url
        self.headers = {"Host": self.platform.host_name(file.model)}
        self.ecs = self.platform.emulator.client("ecs")
        self.cluster = self.platform.cluster
        self.registered(workers)

    def kill_worker(self) -> None:
        self._before = {each["taskArn"] for each in self.running(self.service)}
        self.fault("KillTask", task=min(self._before).rpartition("/")[2])

    def replaced(self) -> None:
        eventually(
            lambda: (
                len({each["taskArn"] for each in self.running(self.service)} - self._before) == 1
                and self.is_steady(self.service)
            ),
            "replacement",
        )

    def scale(self, workers: int) -> None:
        self.ecs.update_service(cluster=self.cluster, service=self._scaled, desiredCount=workers)
        eventually(lambda: self.is_steady(self._scaled), f"{workers} workers")
        self.registered(workers)

    def roll_out(self) -> None:
        before = {each["taskArn"] for each in self.running(self.service)}
        self.ecs.update_service(cluster=self.cluster, service=self.service, forceNewDeployment=True)
        eventually(lambda: self.is_steady(self.service), "deployment")
        assert not before & {each["taskArn"] for each in self.running(self.service)}
        self.registered(WORKERS)

    def close(self) -> None:
        self.platform.stop()

    def fault(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.platform.emulator.task_fault(name, **arguments)

    def described(self, service: str) -> dict[str, Any]:
        return dict(self.ecs.describe_services(cluster=self.cluster, services=[service])["services"][0])

    def is_steady(self, service: str) -> bool:
        """Whether one deployment is complete, all its tasks are healthy, and nothing else runs."""
        found, tasks = self.described(service), self.tasks(service)
        states = [each["rolloutState"] for each in found["deployments"]]
        healthy = all(each["healthStatus"] == "HEALTHY" for each in tasks)
        return states == ["COMPLETED"] and len(tasks) == found["desiredCount"] and healthy

    def tasks(self, service: str, status: str = "RUNNING") -> list[dict[str, Any]]:
        """Return the tasks of a service that are wanted in a state."""
        arns = self.ecs.list_tasks(cluster=self.cluster, serviceName=service, desiredStatus=status)[
            "taskArns"
        ]
        return list(self.ecs.describe_tasks(cluster=self.cluster, tasks=arns)["tasks"]) if arns else []

    def running(self, service: str) -> list[dict[str, Any]]:
        return [each for each in self.tasks(service) if each["lastStatus"] == "RUNNING"]

    def registered(self, workers: int) -> None:
        """Wait until every frontend knows at least this many workers of the role `scaled`, and answers."""
        every = workers + self._others
        eventually(
            lambda: min(self._known(), default=0) >= every and self._answers(), f"{every} registered workers"
        )

    def forgotten(self) -> None:
        """Wait until the frontends know no worker that is gone: its lease has ended."""
        eventually(
            lambda: set(self._known()) == {self.file.workers}, "end of the leases of workers that are gone"
        )

    def _known(self) -> list[int]:
        """Return how many workers each frontend knows. The load balancer does not forward this page."""
        entry = build_plan(self.loaded.blueprint).models[0].deployments[0].entry_point
        url = f"http://127.0.0.1:{entry.ports[0].number}/health"
        return [
            self._known_to(task, url) for task in self.running(service_name(self.file.release, entry.name))
        ]

    def _known_to(self, task: Mapping[str, Any], url: str) -> int:
        try:
            processes = self.fault("Processes", task=task["taskArn"].rpartition("/")[2])["processes"]
            known = json.loads(asked_inside(processes["main"], url))
        except (KeyError, ValueError, subprocess.CalledProcessError):
            return -1
        return sum(each.get("endpoint") == "generate" for each in known.get("instances", []))

    def _answers(self) -> bool:
        try:
            self.client.chat.completions.create(
                model=self.file.model, messages=[{"role": "user", "content": "hello"}], max_tokens=1
            )
        except openai.APIError:
            return False
        return True
