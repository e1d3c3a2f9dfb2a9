"""A stand-in for uv that installs nothing, and the machine that has it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Self

from inference_local.environments.environment import LocalMachine
from tests.unit.local.environments import fake_uv

HOST = LocalMachine("Linux", "x86_64", frozenset({"avx2"}), (2, 36), (3, 11), 10**12, Path("fake") / "uv")


class FakeUv:
    """The folder that the stand-in reads and writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "uv"
        source = Path(__file__).with_name("fake_uv.py")
        self.program.write_text(f"#!{sys.executable}\n{source.read_text()}")
        self.program.chmod(0o755)

    def request(self, behaviour: str) -> None:
        (self.folder / behaviour).touch()

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def syncs(self) -> int:
        return sum(" sync " in call for call in self.calls)


class Ended:
    """A program that has run in this process, in the place of a child."""

    def __init__(self, code: int) -> None:
        self.popen = self
        self._code = code

    def wait(self, _seconds: float) -> int:
        return self._code


class InThisProcess:
    """In the place of a group of child processes: uv and the environment's Python are the stand-in."""

    def __init__(self, *, grace_seconds: float) -> None:
        assert grace_seconds > 0, "uv needs time to remove its temporary files"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing runs on."""

    def start(
        self,
        _name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        working_directory: Path,
    ) -> Ended:
        assert environment["UV_CONCURRENT_DOWNLOADS"] == "4"
        assert working_directory.is_dir()
        program, *words = map(str, command)
        if Path(program).name == "python":
            words = ["check", words[2]]
        with log_path.open("a") as log, redirect_stdout(log), redirect_stderr(log):
            try:
                fake_uv.main(Path(environment["FAKE_UV"]), words)
            except SystemExit as ending:
                return Ended(int(str(ending.code)))
        return Ended(0)

    def forget(self, process: Ended) -> None:
        assert process.wait(0) == 0
