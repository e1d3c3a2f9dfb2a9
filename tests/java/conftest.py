"""Programs in Java that `make test-java` has compiled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from inference_runtime import runtime_directory


def java_command(module: str, program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program among the tests of a module."""
    target = runtime_directory() / "java" / module / "target"
    path = target / "test-class-path"
    java = shutil.which("java")
    if java is None or not path.is_file():
        pytest.fail(f"{path} is missing: run `make test-java`, which needs Java 17 and Maven")
    folders = [target / "test-classes", target / "classes", Path(path.read_text(encoding="utf-8").strip())]
    return [java, "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, folders)), program, *arguments]


class JavaProgram:
    """A running program among the tests of a module, which answers lines of JSON with lines of JSON."""

    def __init__(self, module: str, program: str, *arguments: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            java_command(module, program, *arguments),
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline() or "{}")

    def ask(self, question: Any) -> Any:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=120)
        self._process.stdout.close()
