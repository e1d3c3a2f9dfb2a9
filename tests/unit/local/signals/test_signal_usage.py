"""The lines that a run prints are those that the command line understands."""

from __future__ import annotations

import shlex
from pathlib import Path

from typer.testing import CliRunner

from inference_blueprints.cli.main import command_line
from inference_blueprints.operate.signals import StoreAddress
from inference_local.run_state import RunningSignals
from inference_local.signal_store import signals_usage_lines


def test_the_command_is_one_of_the_command_line_for_that_folder(tmp_path: Path) -> None:
    directory = tmp_path / "a folder"
    store = RunningSignals(StoreAddress("127.0.0.1", "7", "cache", "reader", "us-west-2"), {})
    place, command = signals_usage_lines(store, directory, ".venv/bin/blueprints")
    assert "127.0.0.1:7" in place
    program, *words = shlex.split(command)
    assert program == ".venv/bin/blueprints"
    ran = CliRunner().invoke(command_line(), words)
    assert str(ran.exception) == (
        f"{directory}: no signal store is running; start one with: blueprints local up batch-g6e --keep"
    )
