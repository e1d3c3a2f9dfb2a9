"""A measured figure, the interval of its mean, and how processes are measured in turns."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inference_contracts.units import KIB_PER_MIB

# Measures processes in turns, so that slow moments of the machine affect all of them equally.

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


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure."""

    name: str
    """Name of the figure. It is the file's name or begins with it."""
    value: float
    """The figure, in `unit`."""
    unit: str
    """Such as ``s`` or ``MiB``."""
    baseline: float | None = None
    """Value for comparison, in the same unit and run. None if there is none."""
    goal: float | None = None
    """Maximum ratio to the baseline, or maximum value without a baseline. None if there is no goal."""
    simulated: bool = False
    """Whether the figure comes from simulated engines."""

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of the baseline."""
        return None if self.baseline is None else self.value / self.baseline

    @property
    def met(self) -> bool | None:
        """Whether the goal is met. None without a goal."""
        if self.goal is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.goal

    def as_dict(self) -> dict[str, str | float | bool | None]:
        """Return the entry of ``results.json``."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "baseline": None if self.baseline is None else round(self.baseline, 4),
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "goal": self.goal,
            "met": self.met,
            "simulated": self.simulated,
        }


# The interval in which the mean of a few rounds lies with 95 % confidence.

#: Rounds of a measurement that has an interval, unless it says otherwise.
ROUNDS: Final = 10
#: 97.5 % of Student's t by the number of rounds, with one degree of freedom less.
_QUANTILES: Final = {10: 2.262, 16: 2.131}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower end, the mean and the upper end.

    values: One of each round.
    Raises ValueError if the quantile for their number is not known.
    """
    if len(values) not in _QUANTILES:
        known = " or ".join(map(str, _QUANTILES))
        raise ValueError(f"got {len(values)} rounds; an interval needs {known}")
    mean = statistics.mean(values)
    half = _QUANTILES[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean, mean + half


def interval_figures(name: str, values: Sequence[float], unit: str, *, goal: float) -> Iterator[Figure]:
    """Yield the ends and the mean as simulated figures. The goal applies to the upper end.

    name: Name of the figure. Where the interval contains the goal, that of the mean ends with
        ``_inconclusive``.
    goal: What the value should be at most.
    """
    lower, middle, upper = interval(values)
    doubtful = "_inconclusive" if lower <= goal < upper else ""
    yield Figure(f"{name}_lower", lower, unit, simulated=True)
    yield Figure(f"{name}{doubtful}", middle, unit, simulated=True)
    yield Figure(f"{name}_upper", upper, unit, goal=goal, simulated=True)
