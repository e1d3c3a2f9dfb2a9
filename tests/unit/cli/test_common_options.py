"""Options and inputs of every day: the version, completion in a shell, standard input, and warnings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from inference_blueprints.resources import root

BLUEPRINTS = Path(sys.executable).parent / "blueprints"
TEXT = (root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8")


def run(*arguments: str, directory: Path, given: str = "", **variables: str) -> tuple[int, str, str]:
    result = subprocess.run(
        [str(BLUEPRINTS), *arguments],
        cwd=directory,
        input=given,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    shown = run("--version", directory=tmp_path)
    assert shown == (0, f"blueprints {metadata.version('inference-blueprints')}\n", "")


@pytest.mark.parametrize(("words", "found"), [("va", "validate"), ("batch s", "submit")])
def test_a_shell_completes_commands(words: str, found: str, tmp_path: Path) -> None:
    line = f"blueprints {words}"
    count = str(len(line.split()) - 1)
    variables = {"_BLUEPRINTS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": count}
    code, text, _ = run(directory=tmp_path, **variables)
    assert (code, text.split()[0]) == (0, found)


def test_a_blueprint_comes_from_standard_input(tmp_path: Path) -> None:
    code, text, _ = run("validate", "-", "--output", "json", directory=tmp_path, given=TEXT)
    assert code == 0
    assert {warning["file"] for warning in json.loads(text)["warnings"]} == {"standard input"}
    assert run("show", "-", directory=tmp_path, given=TEXT)[:2] == (0, TEXT)
    broken = TEXT.replace("kind: Blueprint", "kind: Blueprnt")
    code, _, errors = run("plan", "-", directory=tmp_path, given=broken)
    assert code == 1
    assert errors.startswith("standard input:")


def test_warnings_are_listed_by_validate_and_plan_and_counted_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(TEXT)
    _, _, checked = run("validate", "my.yaml", directory=tmp_path)
    warnings = checked.splitlines()
    assert len(warnings) > 1
    assert all(line.startswith("warning: my.yaml:") for line in warnings)
    assert run("plan", "my.yaml", directory=tmp_path)[2].splitlines() == warnings
    _, _, shown = run("show", "my.yaml", directory=tmp_path)
    assert shown == f"{len(warnings)} warnings; to see all: blueprints validate my.yaml\n"
