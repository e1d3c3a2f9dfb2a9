"""Programs in Java that `make test-java` has compiled."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from inference_blueprints.resources import runtime_directory


def java_command(module: str, program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program among the tests of a module."""
    target = runtime_directory() / "java" / module / "target"
    path = target / "test-class-path"
    java = shutil.which("java")
    if java is None or not path.is_file():
        pytest.fail(f"{path} is missing: run `make test-java`, which needs Java 17 and Maven")
    folders = [target / "test-classes", target / "classes", Path(path.read_text(encoding="utf-8").strip())]
    return [java, "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, folders)), program, *arguments]
