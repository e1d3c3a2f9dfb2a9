"""Options and inputs of every day: the version, completion in a shell, standard input, and warnings."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from inference_blueprints.resources import root
from tests.unit.command_run import blueprints

TEXT = (root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8")


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    shown = blueprints("--version", folder=tmp_path)
    assert shown == (0, f"blueprints {metadata.version('inference-blueprints')}\n", "")


@pytest.mark.parametrize(("words", "found"), [("va", "validate"), ("batch s", "submit")])
def test_a_shell_completes_commands(words: str, found: str, tmp_path: Path) -> None:
    line = f"blueprints {words}"
    count = str(len(line.split()) - 1)
    variables = {"_BLUEPRINTS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": count}
    code, text, _ = blueprints(folder=tmp_path, **variables)
    assert (code, text.split()[0]) == (0, found)


def test_a_blueprint_comes_from_standard_input(tmp_path: Path) -> None:
    code, text, _ = blueprints("validate", "-", "--output", "json", folder=tmp_path, given=TEXT)
    assert code == 0
    assert {warning["file"] for warning in json.loads(text)["warnings"]} == {"standard input"}
    assert blueprints("show", "-", folder=tmp_path, given=TEXT)[:2] == (0, TEXT)
    broken = TEXT.replace("kind: Blueprint", "kind: Blueprnt")
    code, _, errors = blueprints("plan", "-", folder=tmp_path, given=broken)
    assert code == 1
    assert errors.startswith("standard input:")


def test_warnings_are_listed_by_validate_and_plan_and_counted_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(TEXT)
    _, _, checked = blueprints("validate", "my.yaml", folder=tmp_path)
    warnings = checked.splitlines()
    assert len(warnings) > 1
    assert all(line.startswith("warning: my.yaml:") for line in warnings)
    assert blueprints("plan", "my.yaml", "--full", folder=tmp_path)[2].splitlines() == warnings
    code, text, errors = blueprints("plan", "my.yaml", folder=tmp_path)
    assert (code, errors) == (0, "")
    assert text.count(" line ") == len(warnings)
    _, _, shown = blueprints("show", "my.yaml", folder=tmp_path)
    assert shown == f"{len(warnings)} warnings; to see all: blueprints validate my.yaml\n"
