"""The installed command starts as a process: its entry point, its imports and its streams.

All other tests run commands in their own process, which has imported everything long before.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from inference_blueprints.cli.main import MODULES
from tests.unit.command_run import PROGRAM, Ran, blueprints

#: https://docs.python.org/3/using/cmdline.html#cmdoption-v
_IMPORTED = re.compile(r"^import '([^']+)' # ", re.MULTILINE)


def started(*words: str, folder: Path, **variables: str) -> Ran:
    done = subprocess.run(
        [str(PROGRAM), *words],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_a_command_imports_neither_other_commands_nor_what_is_slow(tmp_path: Path) -> None:
    ran = started("validate", "batch-g6e", folder=tmp_path, PYTHONVERBOSE="1")
    assert (ran.code, ran.out) == (0, "batch-g6e: valid\n")
    loaded = set(_IMPORTED.findall(ran.err))
    commands = {f"inference_blueprints.cli.{module}" for module in MODULES.values()}
    assert loaded & commands == {"inference_blueprints.cli.blueprint_commands"}
    assert "pydantic" in loaded
    # Both have hundreds of modules.
    assert not [
        each for each in loaded if each.startswith(("inference_blueprints.report.", "inference_local"))
    ]
    assert loaded & {"aws_cdk", "boto3", "jinja2", "jsii", "jsonschema", "numpy", "rich"} == set()


def test_a_process_prints_what_the_command_prints_in_the_process_of_a_test(tmp_path: Path) -> None:
    """A difference means that all other tests of commands prove nothing."""
    ran = started("plan", "quickstart-g6e", folder=tmp_path)
    assert ran.code == 0
    assert ran == blueprints("plan", "quickstart-g6e", folder=tmp_path)


@pytest.mark.parametrize("command", ["schema", "plan quickstart-g6e --output json --sections none"])
def test_a_reader_that_goes_away_is_no_error(command: str) -> None:
    """The schema is larger than a buffer, so it is written before the end of the process."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        program = [str(PROGRAM), *command.split()]
        ended = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert ended.stderr == b""
