"""New model classes on real vLLM: what its cache holds is what the catalogue counts, and it answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import Blueprint
from inference_catalog import Model
from inference_catalog.cache_rules import CacheUse
from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers, WorkerPlace
from inference_local.serving.process_commands import Launch
from inference_local.serving.vllm_cpu.installation import VLLM
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind, VllmRole
from tests.engines.model_classes.scaled_classes import (
    ANSWERS,
    REFUSED,
    STATE_TYPE,
    ScaledClass,
    counted_tokens,
)
from tests.engines.running import RunningEngines, running_engines

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600), pytest.mark.xdist_group("engines")]

_FAILING = Path(__file__).with_name("failing_classes.py")
_PAGE = "docs/real-engines.md"
_LONGEST = 4096
_MEMORY = 2**30
#: How far the engine's number may be from the counted one.
_NEAR = 0.01
_LOGGED = re.compile(r"CPU KV cache size: ([0-9,]+) tokens")
_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
}
#: Tokens of a block without ``--block-size``, and that of latent attention (``vllm/platforms/cpu.py``).
_BLOCK, _LATENT_BLOCK = 128, 16
_CHAT = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 4, "ignore_eos": True}
#: What is asked of each task, by its path, and what the answer must have.
_REQUESTS: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "chat": ("chat/completions", _CHAT, "choices"),
    "embed": ("embeddings", {"input": "one two three"}, "data"),
    "rerank": ("rerank", {"query": "one two", "documents": ["two", "three"]}, "results"),
}


class _ClassKind(VllmKind):
    """vLLM with a small model of one class instead of the one that the blueprint names."""

    def __init__(self, blueprint: Blueprint, scaled: ScaledClass) -> None:
        super().__init__(blueprint)
        self._scaled = scaled
        self.launches: list[Launch] = []
        self.configuration: dict[str, Any] = {}
        kind = self

        class Role(VllmRole):
            def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
                launch = VllmRole.launch(self, model, place, workers)
                # The last of two equal options counts. The catalogue counts 16 bits.
                longest = ("--max-model-len", str(_LONGEST))
                further = ("--dtype", "bfloat16", *longest, *STATE_TYPE, *scaled.arguments)
                found = replace(launch, command=[*launch.command, *further])
                kind.launches.append(found)
                return found

        self.role = Role

    def workers(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> tuple[LocalWorkers, ...]:
        latent = "kv_lora_rank" in self._scaled.configuration
        found = VllmKind.workers(self, plan, roles)
        return tuple(replace(each, latent_attention=latent) for each in found if isinstance(each, VllmRole))

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:  # noqa: ARG002 -- one class
        self.configuration = self._scaled.write(directory)


def _blueprint(task: str) -> Blueprint:
    """Return the quickstart with one worker. Dynamo serves no scores: the engine itself does (`direct`)."""
    document = load_blueprint("quickstart-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    [model] = document["spec"]["models"]
    model["deployments"][0]["aggregated"]["replicas"] = 1
    model["workload"] = {"inputTokens": 1000, "outputTokens": 20, "peakRequestsPerSecond": 1}
    if task != "chat":
        model["task"] = task
        del model["workload"]["outputTokens"]
    if task == "embed":
        # Dynamo's router by KV cache refuses a worker that reads text, such as one for vectors.
        model["routing"] = {"roundRobin": {}}
    if task == "rerank":
        model["stack"] = {"direct": {}}
    return Blueprint.model_validate(document)


def _value(command: Sequence[str], option: str) -> int:
    """Return the number that the last of equal options gives."""
    [last, *_] = [command[at + 1] for at in reversed(range(len(command))) if command[at] == option]
    return int(last)


def _counted(kind: _ClassKind) -> int:
    """Return the tokens that are counted for the engine as it was started."""
    [launch] = kind.launches
    command = launch.command
    switches = [word for word in command if word.endswith("enable-prefix-caching")]
    use = CacheUse(
        rule="vllm",
        block=_value(command, "--block-size"),
        in_flight_tokens=_value(command, "--max-num-batched-tokens"),
        prefix_caching=switches[-1:] == ["--enable-prefix-caching"],
    )
    memory = int(launch.environment["VLLM_CPU_KVCACHE_SPACE"]) * _MEMORY
    return counted_tokens(kind.configuration, memory, _value(command, "--max-model-len"), use)


def _reported(running: RunningEngines) -> int:
    """Return the tokens that the engine logged; 0 if it has no cache."""
    [worker] = [
        each for each in running.serving.served_processes() if each.name.startswith(("worker", "server"))
    ]
    found = _LOGGED.findall(Path(worker.log_file).read_text(encoding="utf-8", errors="replace"))
    return int(found[0].replace(",", "")) if found else 0


@pytest.mark.parametrize("name", ANSWERS)
def test_a_class_answers_and_its_cache_holds_what_is_counted(name: str, tmp_path: Path) -> None:
    """A small model of each new class answers behind the frontend, and its cache holds the counted tokens."""
    scaled = ANSWERS[name]
    blueprint = _blueprint(scaled.task)
    kind = _ClassKind(blueprint, scaled)
    with running_engines(blueprint, tmp_path, kind) as running:
        [endpoint] = running.endpoints
        path, body, field = _REQUESTS[scaled.task]
        url = f"{endpoint.base_url}/{path}"
        answer = httpx2.post(url, json={"model": endpoint.model, **body}, timeout=600)
        assert answer.status_code == 200, answer.text
        assert answer.json()[field], answer.text
        assert _reported(running) == pytest.approx(_counted(kind), rel=_NEAR)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    """Return what vLLM did with each class that does not answer: one program starts them in turn."""
    folder = tmp_path_factory.mktemp("classes")
    arguments = {}
    for name, scaled in REFUSED.items():
        own = scaled.write(folder / name)
        latent = "kv_lora_rank" in own
        arguments[name] = {"max_model_len": _LONGEST, "mamba_ssm_cache_dtype": STATE_TYPE[1]} | (
            {"enable_prefix_caching": False} if latent else {}
        )
    output = folder / "lines.jsonl"
    subprocess.run(
        [str(VLLM.python(print)), str(_FAILING), str(output), json.dumps(arguments)],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), **_SETTINGS},
        check=True,
    )
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return {line["model"]: {**line, "folder": folder} for line in lines}


@pytest.mark.parametrize("name", REFUSED)
def test_a_class_does_not_answer_for_the_stated_reason(
    failed: Mapping[str, Mapping[str, Any]], name: str
) -> None:
    """Each listed class fails on a CPU with the listed error."""
    assert "error" in failed[name], "it answers now: move it to the classes that answer"
    assert REFUSED[name].error in failed[name]["error"]


@pytest.mark.parametrize("name", [name for name, scaled in REFUSED.items() if scaled.reports])
def test_the_cache_of_a_class_that_does_not_answer_is_counted(
    failed: Mapping[str, Mapping[str, Any]], name: str
) -> None:
    """A class that starts but does not answer reports a cache that holds the counted tokens."""
    found = failed[name]
    configuration = json.loads((found["folder"] / name / "config.json").read_text())
    use = CacheUse(
        rule="vllm",
        block=_LATENT_BLOCK if "kv_lora_rank" in configuration else _BLOCK,
        in_flight_tokens=found["batched"],
        prefix_caching=found["prefixes"],
    )
    counted = counted_tokens(configuration, found["memory"], _LONGEST, use)
    assert found["tokens"] == pytest.approx(counted, rel=_NEAR)


def test_the_page_lists_the_classes_that_do_not_answer() -> None:
    """The page lists each class that does not answer on a CPU, with its error and what it means."""
    page = (resources.root() / _PAGE).read_text(encoding="utf-8")
    for name, scaled in REFUSED.items():
        assert f"| `{name}` | {scaled.why} | `{scaled.error}` |" in page
