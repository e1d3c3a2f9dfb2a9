"""Files of GGUF that a user names: other architectures and types are served, and others are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.llama_cpp.llama_kind import LlamaKind
from inference_local.serving.llama_cpp.model_file import PlannedFile, TinyModel, check_file
from inference_local.serving.llama_cpp.server_build import llama_quantize, unpacked_source
from inference_local.serving.local_serving import LocalServing
from tests.llama import write_metadata
from tests.llama.served import SERVED, answer, serving, words

pytestmark = pytest.mark.llama

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma")
#: Rows of the K types have blocks of 256 weights.
WIDE = TinyModel(4096, "qwen3", 2, 256, 8, 4, 512, 5)
TYPES = ("Q8_0", "Q4_0", "Q4_K_M")
PLANNED = PlannedFile("F16", 3072)
CAUSAL = "bert.attention.causal"


def blueprint_of(kind: str) -> Blueprint:
    document = load_blueprint(SERVED).blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0]["weights"]["gguf"]["type"] = kind
    return Blueprint.model_validate(document)


def served_words(file: Path, kind: str, directory: Path) -> str:
    """Return an answer of the platform's servers, through their load balancer."""
    blueprint = blueprint_of(kind)
    engines = LlamaKind(blueprint, file=file)
    engines.prepare(print)
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, directory, processes, engines=engines) as platform,
    ):
        platform.start(lambda _: None)
        [url] = platform.frontend_urls(platform.deployments[0])
        return words(answer(url, max_tokens=24))


def words_by_hand(file: Path) -> str:
    with serving(["--model", str(file), "--host", "127.0.0.1"]) as (url, _):
        return words(answer(url, max_tokens=24))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_file_of_another_architecture_is_served_as_by_hand(architecture: str, tmp_path: Path) -> None:
    file = TinyModel(4096, architecture, seed=21).file(print)
    assert served_words(file, "F16", tmp_path) == words_by_hand(file) != ""


@pytest.mark.parametrize("kind", TYPES)
def test_a_quantised_file_is_served_as_by_hand(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"tiny-{kind}.gguf"
    command = [str(llama_quantize(print)), str(WIDE.file(print)), str(file), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert served_words(file, kind, tmp_path) == words_by_hand(file) != ""


def text(file: Path) -> None:
    file.write_text("no model", encoding="utf-8")


def cut(share: float) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        whole = TinyModel(4096).file(print).read_bytes()
        file.write_bytes(whole[: int(len(whole) * share)])

    return write


def stating(architecture: str, **values: int) -> Callable[[Path], None]:
    """Write a file that states some values of its architecture, and those of a whole one."""
    named: Mapping[str, int] = {key.replace("__", "."): value for key, value in values.items()}

    def write(file: Path) -> None:
        source, program = str(unpacked_source(print)), str(write_metadata.__file__)
        words_of = [sys.executable, "-I", "-B", program, source, str(file), architecture, json.dumps(named)]
        subprocess.run(words_of, check=True)

    return write


HEADS = {"llama__attention__head_count": 4, "llama__context_length": 4096, "general__file_type": 1}


@pytest.mark.parametrize(
    ("write", "message"),
    [
        pytest.param(text, "is no file of GGUF, or is not complete (GGUF magic invalid)", id="text"),
        pytest.param(cut(0.0), "is no file of GGUF, or is not complete", id="empty"),
        pytest.param(cut(0.00001), "is no file of GGUF, or is not complete", id="cut-in-its-header"),
        pytest.param(cut(0.05), "is no file of GGUF, or is not complete", id="cut-in-its-tokens"),
        pytest.param(cut(0.9), "is no file of GGUF, or is not complete", id="cut-in-its-weights"),
        pytest.param(
            stating("mamba", mamba__context_length=4096, general__file_type=1),
            "its architecture mamba states no number of attention heads (mamba.attention.head_count)",
            id="no-attention",
        ),
        pytest.param(
            stating("bert", bert__attention__head_count=4, bert__attention__causal=False),
            "its architecture bert writes no text",
            id="encoder",
        ),
        pytest.param(stating("llama", **HEADS, split__count=3), "is one of 3 parts of a model", id="part"),
        pytest.param(
            stating("llama", **HEADS | {"llama__context_length": 1024}),
            "has a context of 1024 tokens, and the plan's longest request has 3072",
            id="short-context",
        ),
        pytest.param(
            stating("llama", llama__attention__head_count=4, general__file_type=1),
            "has no context length",
            id="no-context",
        ),
        pytest.param(
            stating("llama", **HEADS | {"general__file_type": 15}),
            "has the type Q4_K_M, and gguf.type is F16",
            id="other-type",
        ),
    ],
)
def test_a_file_that_the_plan_cannot_serve_is_refused(
    write: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.gguf"
    write(file)
    with pytest.raises(UserError) as refused:
        check_file(file, PLANNED, print)
    assert str(refused.value).startswith(f"--gguf {file}: {message}")


def test_all_reasons_are_named_at_once(tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    stating("llama", **HEADS | {"llama__context_length": 8, "general__file_type": 7}, split__count=2)(file)
    with pytest.raises(UserError) as refused:
        check_file(file, PLANNED, print)
    assert len(str(refused.value).splitlines()) == 3


def test_a_file_that_states_no_type_is_served_and_said_so(tmp_path: Path) -> None:
    file, said = tmp_path / "own.gguf", list[str]()
    stating("llama", llama__attention__head_count=4, llama__context_length=4096)(file)
    check_file(file, PLANNED, said.append)
    assert said[-1] == "own.gguf: states no type (general.file_type), so it was not compared with F16"
