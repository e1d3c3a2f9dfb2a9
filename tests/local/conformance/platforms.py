"""The same blueprint as it runs on EKS and on ECS, with what the cases do to both."""

from __future__ import annotations

import json
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openai
import yaml

from inference_blueprints import resources
from inference_blueprints.contracts.ecs_names import service_name
from inference_blueprints.loading import LoadedBlueprint, load_blueprint
from inference_blueprints.local.ecs_platform.ecs_platform import EcsPlatform
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.targets.local.local_serving import LocalServing
from inference_blueprints.targets.local.simulated_kind import SimulatedKind

MODEL = "qwen3-8b"
WORKERS = 2
CONTEXT = 13_312
_BLUEPRINT = "ecs-g6e"
RELEASE = "qwen3-8b-main"
_PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 0.5
# Of a worker on EKS; a task on ECS has that of its definition.
_FINISH_SECONDS = 20


def eventually(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (result := happened()):
        assert time.monotonic() < deadline, f"no {what} in time"
        time.sleep(_LOOK_SECONDS)
    return result


def as_shipped(_content: dict[str, Any]) -> None:
    """Change nothing of a blueprint."""


def blueprint(
    cluster: Mapping[str, Any], directory: Path, change: Callable[[dict[str, Any]], None]
) -> LoadedBlueprint:
    """Return the shipped blueprint with another cluster and a change, from a file in a folder."""
    content = yaml.safe_load((resources.blueprints_directory() / f"{_BLUEPRINT}.yaml").read_text())
    content["spec"]["cluster"] = cluster
    change(content)
    file = directory / "blueprint.yaml"
    file.write_text(yaml.safe_dump(content))
    return load_blueprint(str(file))


class ConformingPlatform(ABC):
    """A running platform with one model.

    Attributes
    ----------
    url
        Address of its load balancer, without ``/v1``.
    headers
        Headers of every request.
    """

    url: str
    headers: Mapping[str, str]

    @property
    def client(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.url}/v1", api_key="none", max_retries=0, default_headers=self.headers
        )

    @abstractmethod
    def kill_worker(self) -> None:
        """Kill one worker without notice."""

    @abstractmethod
    def replaced(self) -> None:
        """Wait until a killed worker is replaced."""

    @abstractmethod
    def scale(self, workers: int) -> None:
        """Change the number of workers, and wait until that many are left and no other runs."""

    @abstractmethod
    def roll_out(self) -> None:
        """Replace every worker by a new one, in turn, and wait for the end."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


class EksRendering(ConformingPlatform):
    """The plan's processes, started as its pods."""

    def __init__(self, directory: Path, change: Callable[[dict[str, Any]], None] = as_shipped) -> None:
        loaded = self.loaded = blueprint({"eks": {"version": "1.36"}}, directory, change)
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
        self.serving.kill(self.running()[0])

    def replaced(self) -> None:
        self.serving.replace_killed(lambda _: None)

    def scale(self, workers: int) -> None:
        running = self.running()
        for each in running[workers:]:
            self.serving.workers.end(each)
        eventually(
            lambda: not any(self.serving.workers.is_ending(each) for each in running), "end of workers"
        )
        for each in self.serving.workers.of(self.deployment)[len(running) : workers]:
            self.serving.workers.begin(each)
        self._registered(workers)

    def roll_out(self) -> None:
        for each in self.running():
            self.serving.workers.end(each)
            eventually(lambda each=each: not self.serving.workers.is_ending(each), "end")  # type: ignore[misc]
            self.serving.workers.begin(each)
            self._registered(WORKERS)

    def close(self) -> None:
        self.processes.stop()

    def running(self) -> list[Any]:
        return [each for each in self.serving.workers.of(self.deployment) if self.serving.workers.runs(each)]

    def _registered(self, workers: int) -> None:
        eventually(
            lambda: all(count == workers for count in self.serving.registered(self.deployment)),
            f"{workers} registered workers",
        )


class EcsRendering(ConformingPlatform):
    """The rendered stacks in the emulator, whose agent runs the tasks."""

    service = service_name(RELEASE, "worker")
    frontends = service_name(RELEASE, "frontend")

    def __init__(
        self,
        directory: Path,
        report: Callable[[str], None],
        change: Callable[[dict[str, Any]], None] = as_shipped,
        *,
        workers: int = WORKERS,
    ) -> None:
        loaded = self.loaded = blueprint({"ecs": {}}, directory, change)
        run = directory / "run"
        run.mkdir()
        self.platform = EcsPlatform(loaded, build_plan(loaded.blueprint), run, report=report)
        self.platform.__enter__()
        self.url = self.platform.emulator.models_url
        self.headers = {"Host": self.platform.host_name(MODEL)}
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
        self.ecs.update_service(cluster=self.cluster, service=self.service, desiredCount=workers)
        eventually(lambda: self.is_steady(self.service), f"{workers} workers")
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
        """Wait until a frontend knows at least this many workers, and answers."""
        eventually(lambda: self._known() >= workers and self._answers(), f"{workers} registered workers")

    def forgotten(self) -> None:
        """Wait until the frontends know no worker that is gone: its lease has ended."""
        eventually(lambda: self._known() == WORKERS, "end of the leases of workers that are gone")

    def _known(self) -> int:
        try:
            request = urllib.request.Request(f"{self.url}/health", headers=dict(self.headers))  # noqa: S310 - of this machine
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                known = json.load(answer)
        except (OSError, ValueError):
            return -1
        return sum(each.get("endpoint") == "generate" for each in known.get("instances", []))

    def _answers(self) -> bool:
        try:
            self.client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "hello"}], max_tokens=1
            )
        except openai.APIError:
            return False
        return True
