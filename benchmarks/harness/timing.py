"""Measures processes in turns, so that slow moments of the machine affect all of them equally."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_contracts.units import KIB_PER_MIB

ROOT = Path(__file__).resolve().parents[2]
BLUEPRINTS = ROOT / ".venv" / "bin" / "blueprints"


class BenchmarkError(Exception):
    """A measured command failed, so it gives no figure."""


def interleaved_medians(measures: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """Take several measurements in turns, A B A B, and return the median of each.

    measures: Each returns one measurement.
    rounds: How often each is taken.
    Returns: Medians in the order of `measures`.
    """
    taken = [[measure() for measure in measures] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def wall_seconds(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> float:
    """Run a command to its end and return how long it took.

    command: Program and arguments; it runs in the project's folder.
    environment: Variables beside those of this process.
    Returns: Seconds.
    Raises BenchmarkError if it fails.
    """
    start = time.perf_counter()
    run(command, environment)
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """Resources that a process used."""

    memory_mib: float
    """Maximum resident memory, in MiB."""
    processor_seconds: float
    """Processor time, which other work on the machine hardly changes."""


def cost(command: Sequence[str | Path]) -> ProcessCost:
    """Run a command to its end and return the resources that it used.

    A small parent process runs it and asks the kernel about its children (``getrusage``), so that earlier
    children of this process do not count.

    Raises BenchmarkError if it fails.
    """
    parent = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(usage.ru_maxrss, usage.ru_utime + usage.ru_stime)\n"
    )
    kib, seconds = run([sys.executable, "-S", "-c", parent, *command]).split()
    return ProcessCost(int(kib) / KIB_PER_MIB, float(seconds))


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return its output. Raises BenchmarkError if it fails."""
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        words = " ".join(str(word) for word in command)
        raise BenchmarkError(f"{words} ended with {ran.returncode}:\n{ran.stderr.strip()}")
    return ran.stdout
