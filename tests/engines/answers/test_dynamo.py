"""Answers of real vLLM behind Dynamo's frontend with the plan's parsers: what a client gets of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import openai
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint
from inference_catalog import Model
from inference_local.serving.local_deployment import LocalDeployment, WorkerPlace
from inference_local.serving.process_commands import Launch
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind, VllmRole
from tests.engines.answers.answer_tests import COUNTING, AnswerTests
from tests.engines.answers.scripted_weights import write_counting_model, write_scripted_model
from tests.engines.answers.scripts import SCRIPTS
from tests.engines.running import running_engines
from tests.local.serving.answers.answer_families import Family

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600), pytest.mark.xdist_group("engines")]

#: Families with a model that fits on the quickstart's devices: its plan is the one that starts here.
_FAMILIES = {name: SCRIPTS[name] for name in ("qwen3", "llama3", "mistral")}


class ScriptedRole(VllmRole):
    """Workers that read the weights of their directory."""

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        launch = super().launch(model, place, workers)
        return replace(launch, command=["auto" if word == "dummy" else word for word in launch.command])


class ScriptedKind(VllmKind):
    """vLLM with a script for each model of the blueprint."""

    role = ScriptedRole

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:
        name = deployment.plan.release.partition("-main")[0]
        if name == COUNTING:
            write_counting_model(shape.name, directory)
        else:
            write_scripted_model(shape.name, directory, _FAMILIES[name].text)


def _blueprint() -> Blueprint:
    document: dict[str, Any] = load_blueprint("quickstart-g6e").blueprint.model_dump(
        by_alias=True, exclude_unset=True
    )
    [model] = document["spec"]["models"]
    entries: Mapping[str, str] = {
        COUNTING: "Qwen/Qwen3-8B",
        **{name: family.entry for name, family in _FAMILIES.items()},
    }
    deployment = {"name": "main", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}}
    document["spec"]["models"] = [
        {**model, "name": name, "weights": {"huggingFace": entry}, "deployments": [deployment]}
        for name, entry in entries.items()
    ]
    return Blueprint.model_validate(document)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, openai.OpenAI]]:
    blueprint = _blueprint()
    with running_engines(blueprint, tmp_path_factory.mktemp("answers"), ScriptedKind(blueprint)) as running:
        yield {
            each.model: openai.OpenAI(base_url=each.base_url, api_key="none", max_retries=0)
            for each in running.endpoints
        }


class TestDynamo(AnswerTests):
    """Dynamo with the plan's parsers."""

    families: ClassVar[Mapping[str, Family]] = _FAMILIES
    callers: ClassVar[Sequence[str]] = (COUNTING, *_FAMILIES)
    forced_finish: ClassVar[Mapping[str, str]] = {"required": "tool_calls", "named": "tool_calls"}
