"""Every command that people read has `--output json`, and standard output then holds one document only."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from inference_blueprints import cli, synthesis, tools
from inference_blueprints.cli import deploy_commands, main
from inference_blueprints.cli.main import command_line
from inference_blueprints.cli.options import ExitCode, Output, option_value
from inference_blueprints.resources import root
from inference_local import local_commands
from tests.unit.command_run import blueprints

#: Commands without `--output json`, with the reason.
EXCEPTIONS = {
    "schema": "prints a JSON Schema and nothing else",
    "batch results": "prints JSON Lines and nothing else; its --output names the file to write",
}


def commands(group: Any, *path: str) -> Iterator[str]:
    """Iterate over the words of every command: typer's groups are those with commands."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name))


def takes_json(command: str) -> bool:
    shown = blueprints(*command.split(), "--help", folder=Path.cwd(), COLUMNS="200")
    assert shown.code == 0, command
    return any("--output" in line and "text|json" in line for line in shown.out.splitlines())


def test_every_command_has_json_output_or_a_reason() -> None:
    """A new command that only people can read turns this red, and so does a reason that no longer holds."""
    known = list(commands(typer.main.get_group(command_line())))
    assert {"plan", "batch submit", "local up"} <= set(known)
    assert {command for command in known if not takes_json(command)} == EXCEPTIONS.keys()


def test_an_error_of_the_command_line_is_json_for_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of typer as text, or with the exit code of another error, turns this red."""
    # One command line for all: to build one per command costs half a minute of a test.
    every = command_line()
    monkeypatch.setattr(main, "command_line", lambda _: every)
    for command in [*commands(typer.main.get_group(every)), "nosuch", "batch nosuch"]:
        # The CDK gets options that its commands do not know here.
        wrong = () if command in {"bootstrap", "deploy", "diff"} else ("--nosuch",)
        code, document = run(*command.split(), *wrong)
        assert isinstance(document, dict)
        assert (code, document["valid"]) == (ExitCode.USAGE, False), command
        (error,) = document["errors"]
        group = "" if "nosuch" in command.split()[:1] else f" {command.removesuffix(' nosuch')}"
        assert error["message"].endswith(f"; for arguments and options, run `blueprints{group} --help`")


def test_exit_codes_are_those_of_the_table() -> None:
    """A number in a command, or a row that the page does not have, turns this red."""
    page = (root() / "docs" / "json-output.md").read_text(encoding="utf-8")
    rows = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)}
    assert rows.keys() == set(ExitCode)
    files = [*Path(next(iter(cli.__path__))).glob("*.py"), Path(local_commands.__file__)]
    for file in files:
        assert not re.search(r"(Exit|sys\.exit)\(\d", file.read_text(encoding="utf-8")), file


def test_an_error_of_the_program_is_a_line_and_its_traceback_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["blueprints", "list"])

    def fail() -> None:
        raise KeyError("here")

    monkeypatch.setattr(main, "run", fail)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == ExitCode.UNEXPECTED
    line, file = capsys.readouterr().err, next(tmp_path.iterdir())
    assert line.startswith("unexpected error: KeyError: 'here'; ")
    assert line.endswith(f"in {file}\n")
    assert "Traceback" in file.read_text()


def test_a_disk_without_room_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cdk.out")

    monkeypatch.setattr(synthesis, "demand_folder", full)
    assert blueprints("synth", "quickstart-g6e", folder=tmp_path)[::2] == (
        ExitCode.FAILED,
        "3 warnings; to see all: blueprints validate quickstart-g6e\ncdk.out: No space left on device\n",
    )


def run(*arguments: str) -> tuple[int, object]:
    ran = blueprints(*arguments, "--output", "json", folder=Path.cwd())
    return ran.code, json.loads(ran.out)


def test_init_reports_the_files_that_it_wrote(tmp_path: Path) -> None:
    code, document = run("init", "quickstart-g6e", str(tmp_path / "mine.yaml"), "--name", "mine")
    assert code == 0
    assert isinstance(document, dict)
    assert document.keys() == {"blueprint", "schema"}
    assert all(Path(file).is_file() for file in document.values())


def test_lock_reports_its_changes_and_keeps_its_exit_code(tmp_path: Path) -> None:
    """--check that writes, or that ends with 0 where something is not pinned, turns this red."""
    mine = tmp_path / "mine.yaml"
    run("init", "quickstart-g6e", str(mine), "--name", "mine")
    code, document = run("lock", str(mine), "--check")
    assert isinstance(document, dict)
    assert (code, document["written"], bool(document["changes"])) == (1, False, True)
    assert not Path(document["lock"]).exists()
    code, document = run("lock", str(mine))
    assert isinstance(document, dict)
    assert (code, document["written"]) == (0, True)
    assert document["changes"][0].keys() == {"part", "old", "new"}
    assert run("lock", str(mine), "--check") == (
        0,
        {"lock": document["lock"], "changes": [], "written": False},
    )


def test_down_reports_that_nothing_ran(tmp_path: Path) -> None:
    assert run("local", "down", "--run-directory", str(tmp_path)) == (0, {"stopped": False})


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (None, (Output.TEXT, ["--fail"])),
        ("text", (Output.TEXT, ["--fail"])),
        ("json", (Output.JSON, ["--fail"])),
        ("build/out", (Output.TEXT, ["--fail", "--output", "build/out"])),
    ],
)
def test_the_cdk_still_gets_its_own_output_folder(output: str | None, expected: object) -> None:
    assert deploy_commands._reader(output, ["--fail"]) == expected


def test_diff_counts_the_stacks_that_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CDK's text on standard output, beside the document, turns this red."""
    text = "Stack p-Data\nNumber of stacks with differences: 2\n"
    program = f"process.stdout.write({json.dumps(text)}); process.exitCode = 1"
    command = [str(tools.node()), "-e", program]
    assert deploy_commands._print_diff(command, "quickstart-g6e") == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"stacksWithDifferences": 2, "text": text}
    assert shown.err == text


def test_an_option_is_found_in_both_spellings() -> None:
    assert option_value(["a", "--outputs-file", "x"], "--outputs-file", "-O") == "x"
    assert option_value(["--outputs-file=y"], "--outputs-file", "-O") == "y"
    assert option_value(["x"], "--outputs-file", "-O") is None
