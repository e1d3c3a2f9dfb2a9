"""Every reason why a machine cannot run vLLM is reported at once, before anything is installed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference_contracts.errors import UserError
from inference_local.environments import environment
from inference_local.environments.dynamo import DYNAMO
from inference_local.serving.vllm_cpu.installation import VLLM

HOST = environment.LocalMachine("Linux", "x86_64", frozenset({"avx2"}), (2, 31), (3, 11), 10, Path("uv"))
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "system": ({"system": "Darwin", "glibc": None}, "Darwin on x86_64"),
    "architecture": ({"machine": "aarch64"}, "Linux on aarch64"),
    "processor": ({"cpu_flags": frozenset({"avx", "avx512f"})}, "no AVX2"),
    "old library": ({"glibc": (2, 28)}, "glibc 2.28, the wheels need 2.31"),
    "other library": ({"glibc": None}, "no glibc, the wheels need 2.31"),
    "python": ({"python": (3, 12)}, "Python 3.12, the wheels are for 3.11"),
    "disk": ({"free_bytes": 9}, "free disk space"),
    "uv": ({"uv": None}, "pip install uv"),
}


def test_a_machine_with_exactly_what_is_needed_has_no_problem() -> None:
    assert environment.problems(HOST, Path("cache"), 10, VLLM.machine) == []


@pytest.mark.parametrize(("changed", "words"), WRONG.values(), ids=WRONG)
def test_a_missing_requirement_is_the_only_problem(changed: dict[str, Any], words: str) -> None:
    (problem,) = environment.problems(replace(HOST, **changed), Path("cache"), 10, VLLM.machine)
    assert words in problem
    assert ";" in problem, "a remedy"


def test_every_problem_is_raised_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    host = replace(HOST, cpu_flags=frozenset(), free_bytes=0, uv=None)
    monkeypatch.setattr(environment, "this_host", lambda _: host)
    lines: list[str] = []
    with pytest.raises(UserError) as caught:
        VLLM.python(lines.append)
    assert len(str(caught.value).splitlines()) == 3
    assert (lines, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize("python", [(3, 11), (3, 12), (3, 13)])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_dynamo_runs_where_its_lock_file_has_wheels(machine: str, python: tuple[int, int]) -> None:
    host = replace(HOST, machine=machine, python=python, cpu_flags=frozenset())
    assert environment.problems(host, Path("cache"), 10, DYNAMO.machine) == []


def test_each_python_has_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if Python 3.12 looks for packages in an environment that 3.11 made."""
    first = DYNAMO.folder
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    assert DYNAMO.folder != first


def test_this_machine_is_read(tmp_path: Path) -> None:
    host = environment.this_host(tmp_path / "not" / "there")
    assert host.system == "Linux"
    assert host.python == sys.version_info[:2]
    assert "sse2" in host.cpu_flags
    assert host.free_bytes > 0
    assert host.uv is not None
