"""The table of the commands' modules is complete, and output fits a terminal."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.main import get_group

from inference_blueprints import cli
from inference_blueprints.cli import added_commands
from inference_blueprints.cli.check_output import show
from inference_blueprints.cli.main import MODULES, command_line
from inference_blueprints.cli.options import ExitCode, Output
from inference_blueprints.operate.check_results import CheckResult
from inference_contracts.errors import UserError
from tests.unit.command_run import blueprints


def registered(root: typer.Typer) -> list[str]:
    return list(get_group(root).commands)


@pytest.mark.parametrize("module", sorted(set(MODULES.values())))
def test_the_table_names_every_command_of_a_module(module: str) -> None:
    root = typer.Typer()
    root.callback()(lambda: None)
    import_module(f"{cli.__name__}.{module}").register(root)
    assert registered(root) == [command for command, each in MODULES.items() if each == module]


def test_every_module_that_registers_commands_is_in_the_table() -> None:
    modules = {path.stem for path in Path(next(iter(cli.__path__))).glob("*_command*.py")}
    assert modules - {"added_commands"} == set(MODULES.values())


@pytest.mark.parametrize("command", [None, "--help", "nosuch"])
def test_help_and_unknown_commands_see_every_command(command: str | None) -> None:
    assert registered(command_line(command)) == [*MODULES, "local"]


@pytest.mark.parametrize(
    ("receipt", "command"),
    [
        (None, "pip install inference-local"),
        ("pipx_metadata.json", "pipx inject inference-blueprints inference-local"),
        ("uv-receipt.toml", "uv tool install --force './[local]' in a checkout, or "),
    ],
)
def test_a_missing_distribution_is_installed_as_the_library_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipt: str | None, command: str
) -> None:
    """Red if a user of uv or pipx is told to install into another environment."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    if receipt:
        (tmp_path / receipt).touch()
    with pytest.raises(UserError) as caught:
        added_commands.added_module("local")
    assert f"; install it: {command}" in str(caught.value)


def test_a_terminal_shows_results_in_whole_words_and_commands_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that ends within a word, or a command that cannot be copied, turns this red."""
    monkeypatch.setenv("COLUMNS", "40")
    result = CheckResult(
        "quotas", "error", "0 vCPUs are granted, 16 are needed, l40s can grow to 16", "aws " * 20
    )
    with pytest.raises(typer.Exit):
        show(iter([result]), Output.TEXT)
    assert capsys.readouterr().out == f"{result}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(typer.Exit):
        show(iter([result]), Output.TEXT)
    *rows, command = capsys.readouterr().out.splitlines()
    assert max(map(len, rows)) <= 40
    assert " ".join(rows).split() == str(result).partition(";")[0].split()
    assert command == f"         run: {'aws ' * 20}"


@pytest.mark.parametrize(("columns", "most"), [("0", 80), ("7", 20)])
def test_a_width_that_nothing_fits_into_loses_no_output(columns: str, most: int, tmp_path: Path) -> None:
    """Red if COLUMNS=0, an unknown width, prints nothing, or a narrow one ends in an error."""
    ran = blueprints("plan", "quickstart-g6e", folder=tmp_path, COLUMNS=columns)
    assert ran.code == ExitCode.OK
    assert "read on" in ran.out
    assert max(map(len, ran.out.splitlines())) <= most


def test_a_wrong_choice_is_reported_without_words_of_pydantic(tmp_path: Path) -> None:
    ran = blueprints("plan", "quickstart-g6e", "--output", "yaml", folder=tmp_path)
    assert ran.code == ExitCode.USAGE
    assert "'yaml' is not one of 'text', 'json'" in ran.err
    assert "Value error" not in ran.err
    number = blueprints("tune", "quickstart-g6e", "--gpus", "0", folder=tmp_path)
    assert "must be at least 1" in number.err
    assert "Input should be" not in number.err
