"""Engines' own servers as tasks on ECS: images on GPUs, llama.cpp on processors, vLLM on Trainium2.

The load balancer reaches them itself. The servers are scripted; a task whose arguments are not those of the
plan ends with an error.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest

from inference_blueprints.serving.plan import build_plan
from inference_local.ecs_platform.ecs_platform import EcsPlatform
from inference_local.serving.direct.scripted_images import scripted_png
from tests.local.conformance.platforms import (
    WORKERS,
    ConformingFile,
    blueprint,
    eventually,
    worker_service,
)

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(1800)]

IMAGES = ConformingFile("image-generation", "z-image-turbo", ("server",), "server", "server")
TRAINIUM = ConformingFile("trn2", "llama-70b", ("server",), "server", "server")
PROCESSORS = ConformingFile("graviton-llama-cpp", "qwen3-4b", ("server",), "server", "server")


class Servers:
    """A platform on ECS with one model, whose servers have no router before them."""

    def __init__(
        self, directory: Path, file: ConformingFile, change: Callable[[dict[str, Any]], None]
    ) -> None:
        loaded = blueprint({"ecs": {}}, directory, change, file)
        run = directory / "run"
        run.mkdir()
        self.file = file
        self.platform = EcsPlatform(loaded, build_plan(loaded.blueprint), run, report=print)
        self.platform.__enter__()
        self.ecs = self.platform.emulator.client("ecs")
        self.service = worker_service(loaded, file.release, "server")

    @property
    def client(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.platform.emulator.models_url}/v1",
            api_key="none",
            max_retries=0,
            default_headers={"Host": self.platform.host_name(self.file.model)},
        )

    def cores(self) -> list[str]:
        """Return the NeuronCores of the tasks that run, sorted by their first."""
        found = [
            psutil.Process(process).environ()["NEURON_VISIBLE_DEVICES"] for process in self.running().values()
        ]
        return sorted(found, key=lambda each: int(each.partition("-")[0]))

    def running(self) -> dict[str, int]:
        """Return the server's process of each task that runs. A container may still wait for another one."""
        cluster = self.platform.cluster
        arns = self.ecs.list_tasks(cluster=cluster, serviceName=self.service, desiredStatus="RUNNING")[
            "taskArns"
        ]
        tasks = self.ecs.describe_tasks(cluster=cluster, tasks=arns)["tasks"] if arns else []
        names = [each["taskArn"].rpartition("/")[2] for each in tasks if each["lastStatus"] == "RUNNING"]
        found = {
            name: self.platform.emulator.task_fault("Processes", task=name)["processes"] for name in names
        }
        return {name: processes["main"] for name, processes in found.items() if "main" in processes}

    def complete(self) -> dict[str, int]:
        """Wait until every task runs, and return their processes."""
        running: dict[str, int] = eventually(
            lambda: found if len(found := self.running()) == WORKERS else None, "all tasks of the service"
        )
        return running


def _alone(content: dict[str, Any]) -> None:
    """Leave the servers, without jobs and teams."""
    del content["spec"]["batch"], content["spec"]["teams"]


def _open(content: dict[str, Any]) -> None:
    """Take a model that needs no token, from the stand-in for the Hub, which has every commit."""
    weights = {"huggingFace": "nvidia/Llama-3.1-70B-Instruct-FP8", "revision": "0" * 40, "mirror": {}}
    content["spec"]["models"][0]["weights"] = weights


def _mirrored(content: dict[str, Any]) -> None:
    """Let the stand-in for the Hub have the weights."""
    _alone(content)
    content["spec"]["models"][0]["weights"]["mirror"] = {}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("images"), IMAGES, _mirrored)
    yield servers
    servers.platform.stop()


@pytest.fixture(scope="module")
def processors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("processors"), PROCESSORS, _alone)
    yield servers
    servers.platform.stop()


@pytest.fixture(scope="module")
def trainium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("trainium"), TRAINIUM, _open)
    yield servers
    servers.platform.stop()


def test_tasks_of_a_host_with_neuron_devices_have_cores_of_their_own(trainium: Servers) -> None:
    """All four are on one host, as ECS places them by their CPU units."""
    cluster = trainium.platform.cluster
    [_] = trainium.ecs.list_container_instances(cluster=cluster)["containerInstanceArns"]
    assert trainium.cores() == ["0-15", "16-31", "32-47", "48-63"]


def test_one_worker_compiles_and_its_artefacts_are_kept(trainium: Servers) -> None:
    """The programs of artefacts are real. A scripted server compiles nothing, so only the marker is kept."""
    logs = trainium.platform.emulator.tasks_directory / "logs"

    def said(container: str) -> list[str]:
        return [file.read_text() for file in logs.glob(f"*-{container}.log")]

    eventually(lambda: [text for text in said("artefacts-keep") if "stored" in text], "stored artefacts")
    assert len([text for text in said("artefacts-load") if "this worker compiles" in text]) == 1


def test_image_tasks_answer_with_images(images: Servers) -> None:
    images.complete()
    made = images.client.images.generate(
        model=IMAGES.model,
        prompt="a cup",
        size="64x64",
        n=2,
        extra_body={"seed": 3},
    )
    files = [base64.b64decode(each.b64_json or "") for each in made.data or ()]
    assert files == [scripted_png(64, 64, "a cup", 3, number) for number in range(2)]


def test_processor_tasks_answer_chats(processors: Servers) -> None:
    processors.complete()
    answer = processors.client.chat.completions.create(
        model=PROCESSORS.model, messages=[{"role": "user", "content": "hello"}], max_tokens=7
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 7


def test_a_killed_image_server_is_replaced(images: Servers) -> None:
    _lose_one(images)


def test_a_killed_processor_server_is_replaced(processors: Servers) -> None:
    _lose_one(processors)


def _lose_one(servers: Servers) -> None:
    before = servers.complete()
    killed = min(before)
    psutil.Process(before[killed]).kill()

    def look() -> dict[str, int] | None:
        found = servers.running()
        return found if len(found) == WORKERS and found.keys() - before.keys() else None

    after = eventually(look, "replacement")
    assert killed not in after
    assert len(after.keys() & before.keys()) == WORKERS - 1
    assert [each.id for each in servers.client.models.list().data] == [servers.file.model]
