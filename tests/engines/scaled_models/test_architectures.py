"""Every architecture of the catalogue on real vLLM: it writes tokens, or is refused for the stated reason."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog import Model
from inference_local.serving.vllm_cpu.installation import VLLM
from inference_local.serving.vllm_cpu.scaled_models import refusal, write_scaled_model
from inference_local.serving.vllm_cpu.scaled_models.tables import document

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

_PROGRAM = Path(__file__).with_name("eight_tokens.py")
_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
}
#: One model for each pair of architecture and chat format, by its name in the test: of those that have a
#: scaled-down model.
_MODELS: Mapping[str, Model] = {
    f"{model.architecture}-{model.answer_format}": model
    for model in catalog.models().values()
    if model.architecture in document("architectures")["architectures"]
}
#: Experts and latent attention are split in ways of their own.
_SPLIT: Mapping[str, Model] = {
    f"{model.architecture}-in-two-processes": model
    for model in map(catalog.model, ("Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"))
}
_TOKENS = 8
_RUNNING = [name for name, model in _MODELS.items() if refusal(model) is None]
#: The image processor of this architecture loads numba, and vLLM's engine does not start in the same process
#: after that: ``_rebind_kernels`` of ``vllm/triton_utils/dispatcher.py`` asks each of numba's objects for an
#: attribute. Servers run the engine in a process of its own.
_OWN_PROCESS = "KimiK25ForConditionalGeneration"
#: Models that run in one process, the only one that can be told that the processor has no AVX-512.
_TOGETHER = [name for name in _RUNNING if _MODELS[name].architecture != _OWN_PROCESS]
Found = Mapping[str, Mapping[str, Any]]


def _written(folder: Path, models: Mapping[str, Model], *features: str) -> Found:
    """Return what vLLM did with each model: one program loads all of them, one after the other."""
    processes = {name: 2 if name in _SPLIT else 1 for name in models}
    for name, model in models.items():
        write_scaled_model(model, folder / name, tensor_parallel_size=processes[name])
    starts = {name: (processes[name], models[name].architecture == _OWN_PROCESS) for name in models}
    output = folder / "lines.jsonl"
    subprocess.run(
        [str(VLLM.python(print)), str(_PROGRAM), str(output), json.dumps(starts), *features],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), **_SETTINGS},
        check=True,
    )
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return {line["model"]: line for line in lines}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return _written(tmp_path_factory.mktemp("models"), {**_MODELS, **_SPLIT})


@pytest.fixture(scope="module")
def found_with_avx2(tmp_path_factory: pytest.TempPathFactory) -> Found:
    models = {name: _MODELS[name] for name in _TOGETHER}
    return _written(tmp_path_factory.mktemp("avx2"), models, "AVX2")


@pytest.mark.parametrize(
    "name", [name for name, model in {**_MODELS, **_SPLIT}.items() if refusal(model) is None]
)
def test_an_architecture_writes_tokens(found: Found, name: str) -> None:
    """A scaled-down model of each architecture that is not refused writes tokens."""
    assert "error" not in found[name], found[name]["error"]
    assert len(found[name]["tokens"]) == _TOKENS


@pytest.mark.parametrize("name", _TOGETHER)
def test_an_architecture_writes_tokens_without_avx512(found_with_avx2: Found, name: str) -> None:
    """On a processor with AVX2 alone, vLLM loads another library, and each architecture writes tokens."""
    assert "error" not in found_with_avx2[name], found_with_avx2[name]["error"]
    assert found_with_avx2[name]["libraries"] == ["_C_AVX2"]
    assert len(found_with_avx2[name]["tokens"]) == _TOKENS


@pytest.mark.parametrize("name", _RUNNING)
def test_the_chat_template_renders_tools_calls_and_results(found: Found, name: str) -> None:
    """The chat format of each family has tools, calls and their results."""
    prompt = found[name]["prompt"]
    chat = _MODELS[name].answer_format is not None  # a family without an answer format has no tools
    assert not chat or prompt.count("get_weather") > 1
    assert prompt.index("Weather?") < prompt.index("Mild.")


@pytest.mark.parametrize("name", [name for name, model in _MODELS.items() if refusal(model) is not None])
def test_a_refused_architecture_fails_for_the_stated_reason(found: Found, name: str) -> None:
    """A refused architecture fails with the stated error, in the stated file of vLLM."""
    entry = document("refused")["architectures"][_MODELS[name].architecture]
    error = found[name]["error"]
    assert entry["error"] in error
    assert entry["source"].partition(" ")[0] in error


def test_only_architectures_of_the_catalogue_are_listed() -> None:
    """Scaled-down models exist for architectures of the catalogue, and for no others."""
    known = {model.architecture for model in catalog.models().values()}
    assert set(document("refused")["architectures"]) <= known
    assert set(document("architectures")["architectures"]) <= known
