"""The built wheel is enough: in an empty environment it validates and synthesises a user's own file."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from inference_blueprints import __version__
from inference_blueprints.resources import root

#: Neither node nor cdk is on this PATH.
BARE_PATH = "/usr/bin:/bin"
UV = [sys.executable, "-m", "uv", "--quiet"]


def run(*command: str | Path, directory: Path, environment: Mapping[str, str] = os.environ) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        cwd=directory,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, directory=root())
    (file,) = directory.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def blueprints(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("environment")
    run(*UV, "venv", "--python", sys.executable, environment / "venv", directory=environment)
    python = environment / "venv/bin/python"
    lock = root() / "requirements.lock"
    run(*UV, "pip", "install", "--python", python, "--constraint", lock, wheel, directory=environment)
    return environment / "venv/bin/blueprints"


def test_the_wheel_holds_no_tests_and_no_second_copy(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    top = {name.split("/")[0] for name in names}
    assert top == {"inference_blueprints", f"inference_blueprints-{__version__}.dist-info"}


def test_a_user_validates_and_synthesises_a_file_of_their_own(blueprints: Path, tmp_path: Path) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"VIRTUAL_ENV", "PYTHONPATH", "BLUEPRINT"}
    } | {"PATH": BARE_PATH, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = ("init", "quickstart-g6e", "mine.yaml", "--name", "mine")
    run(blueprints, *words, directory=tmp_path, environment=environment)
    run(blueprints, "validate", "mine.yaml", directory=tmp_path, environment=environment)
    run(blueprints, "synth", "mine.yaml", "--directory", "out", directory=tmp_path, environment=environment)
    stacks = {path.name.removesuffix(".template.json") for path in (tmp_path / "out").glob("*.template.json")}
    assert {"mine-Data", "mine-Network", "mine-Cluster", "mine-Platform", "mine-Capacity"} <= stacks
    assert "mine-Model-qwen3-8b" in stacks
