"""A command that runs in the process of a test shows what a process would show, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.unit import command_run
from tests.unit.command_run import Ran, blueprints


def test_streams_and_the_exit_code_are_those_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end() -> None:
        assert sys.stdout.fileno() == 1
        print("out")
        os.write(2, b"from a library in another language\n")
        sys.exit(3)

    monkeypatch.setattr(command_run, "run", end)
    assert blueprints("x", folder=tmp_path) == Ran(3, "out\n", "from a library in another language\n")


def test_what_would_be_a_traceback_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(command_run, "run", fail)
    with pytest.raises(KeyError, match="a bug"):
        blueprints("x", folder=tmp_path)


def test_a_command_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change_everything() -> None:
        assert (Path.cwd(), sys.stdin.read(), os.environ["GIVEN"]) == (tmp_path, "input", "value")
        os.environ["LEFT"] = "over"
        os.chdir("/")

    monkeypatch.setattr(command_run, "run", change_everything)
    before = (dict(os.environ), Path.cwd(), sys.argv, sys.stdin, sys.stdout, sys.stderr, os.fstat(1).st_ino)
    assert blueprints("x", folder=tmp_path, given="input", GIVEN="value") == Ran(0, "", "")
    after = (dict(os.environ), Path.cwd(), sys.argv, sys.stdin, sys.stdout, sys.stderr, os.fstat(1).st_ino)
    assert after == before
