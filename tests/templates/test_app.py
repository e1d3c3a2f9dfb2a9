"""The app as it is started: which blueprint it takes, and what it needs of the machine."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from jsii._kernel.providers.process import _NodeProcess

import app
from inference_blueprints.resources import root
from tests.templates.support import Templates
from tests.templates.synthesis import CONTEXT

#: What the names of modules with stacks and constructs begin with.
_OWN = ("stacks", "inference_constructs")
#: Runs the app; writes the modules that it has imported to the file that MODULES names.
_PROGRAM = """
import atexit, os, pathlib, runpy, sys
modules = pathlib.Path(os.environ.get("MODULES", os.devnull))
atexit.register(lambda: modules.write_text("\\n".join(sys.modules)))
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def run(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start the app somewhere else, with an environment of its own."""
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(root() / "app.py")],
        env={"PATH": "/nonexistent", "HOME": os.environ.get("HOME", "/"), **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **environment: str) -> str:
    """Run the app in this process with an environment that it refuses, and return what it says."""
    for name in ("BLUEPRINT", "CDK_CONTEXT_JSON"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(app, "collect_rarely", lambda: None)
    assert app.main() == 1
    return capsys.readouterr().err


def test_without_a_blueprint_it_lists_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = refused(monkeypatch, capsys).splitlines()
    assert "-c blueprint=NAME_OR_PATH" in line
    assert "BLUEPRINT" in line
    assert "quickstart-g6e" in line


def test_a_broken_blueprint_is_said_in_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("kind: Blueprint\napiVersion: inference-blueprints/v1\n")
    monkeypatch.chdir(tmp_path)
    lines = refused(monkeypatch, capsys, BLUEPRINT="./mine.yaml").splitlines()
    assert lines
    assert all(line.startswith("mine.yaml:") for line in lines)


def test_context_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    context = json.dumps({"blueprint": "no-such"})
    assert "no-such" in refused(monkeypatch, capsys, BLUEPRINT="quickstart-g6e", CDK_CONTEXT_JSON=context)


@pytest.fixture
def no_stacks() -> Iterator[None]:
    """Without the modules of stacks and constructs, as when the app starts."""

    def own() -> dict[str, ModuleType]:
        return {name: sys.modules[name] for name in list(sys.modules) if name.startswith(_OWN)}

    kept = own()
    for name in kept:
        del sys.modules[name]
    yield
    for name in own():
        del sys.modules[name]
    sys.modules.update(kept)


@pytest.mark.usefixtures("no_stacks")
def test_importing_a_module_makes_no_call_to_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if a module calls Node while it is imported: `main` imports modules beside another call."""

    def refuse(_process: object, request: object, _response: object) -> None:
        raise AssertionError(f"calls Node: {request}")

    app.load_cdk()
    monkeypatch.setattr(_NodeProcess, "send", refuse)
    for package in map(importlib.import_module, _OWN):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    assert "stacks.eks.cluster_stack" in sys.modules


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("environment", "said"),
    [({}, "no blueprint given"), ({"BLUEPRINT": "no-such"}, "no-such")],
    ids=["none", "unknown"],
)
def test_a_refusal_is_text_and_an_exit_code(tmp_path: Path, environment: dict[str, str], said: str) -> None:
    result = run(tmp_path, **environment)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


#: Of all stacks that there are, beside those of a model; a process of its own takes seconds.
@pytest.mark.thorough
@pytest.mark.parametrize("shipped_name", ["quickstart-g6e", "batch-g6e"], indirect=True)
def test_it_needs_no_node_on_the_path_and_no_feature_flags_of_the_cli(
    tmp_path: Path, shipped_name: str, shipped_templates: Templates
) -> None:
    outdir = tmp_path / "cdk.out"
    result = run(
        tmp_path,
        BLUEPRINT=shipped_name,
        CDK_OUTDIR=str(outdir),
        CDK_CONTEXT_JSON=json.dumps(CONTEXT),
        PYTHONHASHSEED="1",
        MODULES=str(tmp_path / "modules"),
    )
    assert result.returncode == 0, result.stderr
    assert Templates(outdir).by_stack == shipped_templates.by_stack
    imported = set((tmp_path / "modules").read_text().split())
    assert "aws_cdk.aws_eks_v2" in imported
    # Importing a service takes up to 0.2 s. Only some sections of a blueprint need these.
    services = ("athena", "codebuild", "dynamodb", "ecs", "elasticache", "glue", "stepfunctions")
    used = {f"aws_cdk.aws_{service}" for service in services} & imported
    assert bool(used) == (shipped_name == "batch-g6e"), used
