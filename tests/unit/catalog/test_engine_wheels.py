"""Wheels of engines: how they are found and opened, and what is read from them."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import subprocess
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from inference_catalog.engine_wheels import wheels
from inference_catalog.engine_wheels.model_classes import sglang_model_classes, vllm_model_classes
from inference_catalog.engine_wheels.release_file import release_file
from inference_catalog.engine_wheels.wheels import open_wheel
from inference_contracts.errors import UserError

#: As vLLM's registry writes its tables: plainly, by parts of another, and joined.
REGISTRY = """
_TEXT = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM"), "Other": ("other", "Other")}
_EMBEDDING = {"BertModel": ("bert", "BertModel"), **{k: v for k, v in _TEXT.items() if v[0] == "llama"}}
_VLLM_MODELS = {**_TEXT, **_EMBEDDING}
"""
VLLM = {
    "vllm/model_executor/models/registry.py": REGISTRY,
    "vllm/config/model.py": "class ModelConfig:\n    enforce_eager: bool = False\n    seed: int = 0\n",
    "vllm/engine/arg_utils.py": (
        "def add(parser, model_kwargs):\n"
        "    parser.add_argument('--seed', **model_kwargs['seed'])\n"
        "    parser.add_argument('--enforce-eager', **model_kwargs['enforce_eager'])\n"
        "    parser.add_argument('--reasoning-parser')\n"
    ),
    "vllm/entrypoints/common/cli_args.py": "class FrontendArgs:\n    port: int = 8000\n",
    "vllm/envs.py": 'environment_variables = {\n    "VLLM_PORT": int,\n    "VLLM_HOST_IP": str,\n}\n',
    "vllm/reasoning/__init__.py": "_REASONING_PARSERS_TO_REGISTER = {'qwen3': 1}",
    "vllm/tool_parsers/__init__.py": "_TOOL_PARSERS_TO_REGISTER = {'hermes': 1}",
}
NAME = "vllm-7.0.0+cpu-cp38-abi3-manylinux_2_28_x86_64.whl"


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a wheel with some of its modules changed."""

    def write(changed: Mapping[str, str | None] = {}, name: str = NAME) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            for module, text in {**VLLM, **changed}.items():
                if text is not None:
                    archive.writestr(module, text)
        return path

    return write


def test_a_file_says_what_it_is(wheel: Callable[..., Path]) -> None:
    path = wheel()
    opened = open_wheel(str(path))
    assert (opened.package, opened.release) == ("vllm", "7.0.0")
    assert opened.digest == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("vllm", "got 'vllm', must be a wheel's file or a release such as vllm==0.33.0"),
        ("--index-url==1", "got '--index-url==1', must be"),
        ("missing-1-py3-none-any.whl", "missing-1-py3-none-any.whl: cannot be read: No such file"),
        ("vllm.whl", "vllm.whl: got the name 'vllm.whl', a wheel's is like vllm-0.33.0-"),
    ],
)
def test_what_is_no_wheel_is_refused(given: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        open_wheel(given)
    assert str(caught.value).startswith(message)


def test_another_file_is_no_wheel(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("text")
    with pytest.raises(UserError, match="is not a wheel"):
        open_wheel(str(tmp_path / NAME))


class Index:
    """An index that answers range requests for one file.

    whole: Whether it ignores the range.
    """

    def __init__(self, content: bytes, *, whole: bool = False) -> None:
        self._content, self._whole = content, whole
        self.sent = 0

    def __call__(self, request: urllib.request.Request, timeout: float) -> Any:  # noqa: ARG002 -- as urlopen
        if request.get_method() == "HEAD":
            return Answer(b"", 200, {"Content-Length": str(len(self._content))})
        first, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
        part = self._content[first : last + 1]
        self.sent += len(part)
        return Answer(part, 200 if self._whole else 206, {})


class Answer(io.BytesIO):
    def __init__(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        super().__init__(content)
        self.status, self.headers = status, headers


#: What uv and pip write about a wheel.
ANSWERS = {
    "uv": '[[packages]]\nname = "vllm"\n'
    'wheels = [{url = "https://i.example/v.whl", hashes = {sha256 = "aa"}}]',
    "pip": '{"install": [{"download_info": {"url": "https://i.example/v.whl", "archive_info": '
    '{"hashes": {"sha256": "aa"}}}}]}',
}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], list[list[str]]]:
    """Return a function that makes one program the only one here, and returns the commands it got."""

    def only(program: str, answer: str, *, fails: bool = False) -> list[list[str]]:
        commands: list[list[str]] = []

        def run(command: list[str], **_: Any) -> Any:
            commands.append(command)
            if fails:
                raise subprocess.CalledProcessError(1, command, stderr="first\nno such release\n")
            return subprocess.CompletedProcess(command, 0, answer)

        monkeypatch.setattr(wheels, "_program", lambda name: [name] if name == program else [])
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        monkeypatch.setattr(subprocess, "run", run)
        return commands

    return only


@pytest.mark.parametrize("program", sorted(ANSWERS))
def test_a_release_is_read_in_parts_from_the_configured_index(
    program: str, wheel: Callable[..., Path], installed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"vllm/_C.abi3.so": "x" * (3 * 1024**2)}
    index = Index(wheel(large).read_bytes())
    monkeypatch.setattr(urllib.request, "urlopen", index)
    commands = installed(program, ANSWERS[program])
    opened = open_wheel("vllm==7.0.0")
    assert [command[0] for command in commands] == [program]
    assert opened.digest == "sha256:aa"
    assert vllm_model_classes(opened.archive) == ("BertModel", "LlamaForCausalLM", "Other")
    assert index.sent < 1024**2


def test_an_index_that_sends_the_whole_file_is_not_used(
    wheel: Callable[..., Path], installed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", Index(wheel().read_bytes(), whole=True))
    installed("uv", ANSWERS["uv"])
    with pytest.raises(UserError, match="answers no range requests; download the wheel and give its file"):
        open_wheel("vllm==7.0.0")


def test_a_release_that_is_not_there_is_named(installed: Callable[..., Any]) -> None:
    installed("pip", "", fails=True)
    with pytest.raises(UserError, match=r"^vllm==7: the package index has no wheel of it: no such release$"):
        open_wheel("vllm==7")


def test_a_release_without_a_wheel_is_named(installed: Callable[..., Any]) -> None:
    installed("uv", '[[packages]]\nname = "vllm"')
    with pytest.raises(UserError, match="only the source of this release"):
        open_wheel("vllm==7")


def test_without_a_program_that_knows_the_index_a_file_is_needed(installed: Callable[..., Any]) -> None:
    installed("neither", "")
    with pytest.raises(UserError, match=r"neither pip nor uv is installed.*give its file"):
        open_wheel("vllm==7")


@pytest.mark.parametrize(
    "module",
    [
        "vllm/entrypoints/common/cli_args.py",
        "vllm/entrypoints/launchers/cli_args.py",
        "vllm/entrypoints/openai/cli_args.py",
    ],
)
def test_the_flags_of_the_server_are_found_where_a_release_has_them(
    module: str, wheel: Callable[..., Path]
) -> None:
    text = VLLM["vllm/entrypoints/common/cli_args.py"]
    path = wheel({"vllm/entrypoints/common/cli_args.py": None, module: text})
    assert '"--port": {"takes_value": true' in release_file(open_wheel(str(path)))


def test_a_release_with_an_unknown_layout_is_refused(wheel: Callable[..., Path]) -> None:
    opened = open_wheel(str(wheel({"vllm/entrypoints/common/cli_args.py": None})))
    with pytest.raises(UserError, match=r"has none of vllm/entrypoints/common/cli_args\.py, "):
        release_file(opened)
    opened = open_wheel(str(wheel({"vllm/engine/arg_utils.py": None})))
    with pytest.raises(UserError, match="not laid out as the releases known here"):
        release_file(opened)


def test_a_registry_that_is_no_plain_table_is_refused(wheel: Callable[..., Path]) -> None:
    changed = {"vllm/model_executor/models/registry.py": "_VLLM_MODELS = {**read_models()}"}
    with pytest.raises(UserError, match="_VLLM_MODELS is not written as a plain table"):
        vllm_model_classes(open_wheel(str(wheel(changed))).archive)
    changed = {"vllm/model_executor/models/registry.py": "MODELS = {}"}
    with pytest.raises(UserError, match="has no table _VLLM_MODELS"):
        vllm_model_classes(open_wheel(str(wheel(changed))).archive)


def test_sglang_registers_what_its_modules_name(wheel: Callable[..., Path]) -> None:
    modules = {
        "sglang/srt/models/llama.py": "class A: pass\nEntryClass = [A, B]",
        "sglang/srt/models/qwen.py": "EntryClass = Q",
        "sglang/srt/models/helper.py": "class Helper: pass",
        "sglang/srt/models/deeper/part.py": "EntryClass = NotRegistered",
    }
    opened = open_wheel(str(wheel(modules)))
    assert sglang_model_classes(opened.archive) == ("A", "B", "Q")


def test_a_wheel_of_another_package_is_refused(wheel: Callable[..., Path]) -> None:
    opened = open_wheel(str(wheel(name="torch-2.0-py3-none-any.whl")))
    with pytest.raises(UserError, match="got a wheel of 'torch', the releases of vllm or sglang"):
        release_file(opened)
