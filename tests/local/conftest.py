"""Runs `blueprints local up` in separate processes, as a user does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from inference_blueprints.resources import root

BLUEPRINTS = Path(sys.executable).parent / "blueprints"
PATIENCE_SECONDS = 240.0


class Run:
    """One `blueprints local up`, with every process that it was observed to have.

    patience_seconds: How long each wait may take. It bounds a hang, not a speed.
    """

    def __init__(
        self, run_directory: Path, *options: str, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self.run_directory = run_directory
        self._patience_seconds = patience_seconds
        self.output_path = run_directory.with_suffix(".out")
        self.seen: set[psutil.Process] = set()
        command = [str(BLUEPRINTS), "local", "up", *options, "--run-directory", str(run_directory)]
        with self.output_path.open("w") as output:
            self.process = subprocess.Popen(
                command, cwd=root(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def output(self) -> str:
        return self.output_path.read_text()

    def wait_for(self, text: str) -> None:
        self._wait(lambda: text in self.output, f"{text!r} in the output")

    def wait_for_process(self, words: str) -> None:
        """Wait for a process whose command line contains these words."""
        self._wait(lambda: any(self._have(words)), f"process of {words!r}")

    def wait_for_end(self) -> int:
        self._wait(lambda: self.process.poll() is not None, "the end")
        return self.process.wait()

    def find(self, words: str) -> psutil.Process:
        """Return the running process whose command line contains these words."""
        found = next(self._have(words), None)
        assert found is not None, f"no process of {words}"
        return found

    def _have(self, words: str) -> Iterator[psutil.Process]:
        """Yield the running processes whose command line contains these words."""
        for each in self.seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                if words in " ".join(each.cmdline()):
                    yield each

    def processes_left(self) -> list[str]:
        """Return the processes that still run after a short wait for the kernel."""
        _, alive = psutil.wait_procs([each for each in self.seen if each.pid != self.process.pid], timeout=60)
        return [f"{each.pid} {each.name()}" for each in alive]

    def _wait(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._patience_seconds
        while not happened():
            self.look()
            assert self.process.poll() is None or happened(), f"ended before {what}:\n{self.output}"
            assert time.monotonic() < deadline, f"no {what} in time:\n{self.output}"
            time.sleep(0.1)
        self.look()

    def look(self) -> None:
        """Record the running processes."""
        if self.process.poll() is None:
            self.seen.update(psutil.Process(self.process.pid).children(recursive=True))


@pytest.fixture(scope="session", autouse=True)
def quick_synthesis() -> Iterator[None]:
    """Skip the work that takes half of the processor time of each new CDK process.

    Templates are not checked against CloudFormation's rules again: `tests/templates` does so for each shipped
    blueprint, and for an app in a separate process. A run with a separate home directory does not unpack
    aws-cdk-lib there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_VALIDATION", "false")
        patch.setenv("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(Path.home() / ".cache/aws/jsii/package-cache"))
        yield


@pytest.fixture
def start_run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(*options: str) -> Run:
        runs.append(Run(tmp_path / f"run{len(runs)}", *options))
        return runs[-1]

    yield start
    for run in runs:
        run.process.terminate()
        run.process.wait(60)
