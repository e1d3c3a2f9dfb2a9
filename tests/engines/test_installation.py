"""The environment of real vLLM, as the first use leaves it."""

from __future__ import annotations

import json
import subprocess
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from inference_blueprints import tools
from inference_local.environments.environment import disk_bytes
from inference_local.serving.vllm_cpu.installation import VLLM


@pytest.fixture(scope="module")
def python() -> Path:
    return VLLM.python(print)


def packages(python: Path) -> Path:
    (folder,) = python.parent.parent.glob("lib/python3.11/site-packages")
    return folder


def test_the_packages_are_exactly_those_of_the_requirements(python: Path) -> None:
    """The environment has exactly the locked packages, and vLLM's metadata."""
    command = [str(tools.uv()), "pip", "list", "--format", "json", "--python", str(python)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {entry["name"]: entry["version"] for entry in json.loads(listed)}
    assert found.pop("vllm") == f"{VLLM.locked_version('vllm-cpu')}+cpu"
    assert found == {name: VLLM.locked_version(name) for name in found}
    text = VLLM.requirements.read_text(encoding="utf-8")
    assert len(found) == text.count("==")


def test_every_module_of_the_engine_is_compiled(python: Path) -> None:
    """The libraries are compiled once, so that a worker does not compile them at each start."""
    sources = [
        path
        for name in ("vllm", "dynamo", "torch", "transformers")
        for path in packages(python).glob(f"{name}/**/*.py")
    ]
    compiled = [path for path in sources if Path(cache_from_source(str(path))).exists()]
    # Some are templates, which are no Python.
    assert len(compiled) > 0.99 * len(sources) > 5000


def test_the_announced_size_is_that_of_the_disk(python: Path) -> None:
    """The size that is announced before the installation is right to five percent."""
    found = disk_bytes(python.parents[2])
    assert found <= VLLM.installed_bytes <= 1.05 * found


def test_vllm_computes_on_the_cpu(python: Path) -> None:
    """vLLM chooses the CPU, and its own kernel computes there."""
    program = (
        "import torch; from vllm.platforms import current_platform as platform; platform.import_kernels()\n"
        "x = torch.randn(3, 128); out = torch.empty(3, 64)\n"
        "torch.ops._C.silu_and_mul(out, x)\n"
        "expected = torch.nn.functional.silu(x[:, :64]) * x[:, 64:]\n"
        "assert platform.is_cpu() and torch.allclose(out, expected, atol=1e-5)"
    )
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_second_use_installs_nothing(python: Path) -> None:
    """The next use finds the environment and reports nothing."""
    lines: list[str] = []
    assert VLLM.python(lines.append) == python
    assert lines == []
