"""Style and types are rules of the house like any other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from inference_blueprints.resources import root


# Without a cache, mypy reads the types of aws_cdk for two minutes of processor time.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["lint", "format", "types"],
)
def test_the_checker_finds_nothing(command: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=root(), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
