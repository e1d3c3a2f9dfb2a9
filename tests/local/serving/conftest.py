"""The quickstart's model, served once for the tests of a module that do not break it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import openai
import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing


@dataclass(frozen=True)
class Served:
    serving: LocalServing
    endpoint: LocalEndpoint
    processes: ProcessGroup
    client: openai.OpenAI


def _quickstart() -> Blueprint:
    text = (resources.blueprints_directory() / "quickstart-g6e.yaml").read_text()
    return Blueprint.model_validate(yaml.safe_load(text))


@pytest.fixture(scope="session")
def quickstart() -> Blueprint:
    return _quickstart()


# Of a module: its processes watch folders, and Linux limits how many a user watches (fs.inotify).
@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, quickstart: Blueprint) -> Iterator[Served]:
    directory: Path = tmp_path_factory.mktemp("serving")
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(quickstart), quickstart, directory, processes) as serving,
    ):
        (endpoint,) = serving.start(lambda _: None)
        client = openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0)
        yield Served(serving, endpoint, processes, client)
        serving.check()  # every process still runs after the tests


@pytest.fixture(scope="module")
def client(served: Served) -> openai.OpenAI:
    return served.client
