"""The command line imports the module of one command only, and the table of modules is complete."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.main import get_group

from inference_blueprints import cli
from inference_blueprints.cli.main import MODULES, command_line


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
    assert modules == set(MODULES.values())


@pytest.mark.parametrize("command", [None, "--help", "nosuch"])
def test_help_and_unknown_commands_see_every_command(command: str | None) -> None:
    assert registered(command_line(command)) == list(MODULES)


def test_a_command_does_not_import_the_modules_of_others() -> None:
    program = (
        "import sys; from inference_blueprints.cli.main import command_line; command_line('validate')\n"
        "print(*(name for name in sys.modules if name.startswith('inference_blueprints.cli.')))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in result.stdout.split()}
    assert loaded & set(MODULES.values()) == {"blueprint_commands"}


def test_validate_imports_nothing_slow_that_it_does_not_need(tmp_path: Path) -> None:
    program = (
        "import sys; from inference_blueprints.cli.main import main\n"
        "sys.argv = ['blueprints', 'validate', 'batch-g6e']\n"
        "try: main()\n"
        "finally: print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(result.stdout.split())
    assert "pydantic" in loaded
    assert loaded & {"jinja2", "rich", "boto3", "aws_cdk"} == set()
