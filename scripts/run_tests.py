"""Run the tests of every commit: unit, charts, runtime and templates, in parts of which two run at once.

``make test`` runs all layers, ``make unit`` and its like run one. Each part is a process of pytest, so each
file is imported once. The output of a part is shown if it fails, and is in ``build/tests/`` in any case.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from children import end_with_children

ROOT = Path(__file__).resolve().parent.parent
say = partial(print, flush=True)
OUTPUT = Path("build") / "tests"
#: The layers, and whether all files of a layer share costly work, such as the synthesis of templates.
LAYERS = {"templates": True, "charts": True, "runtime": False, "unit": False}
AT_ONCE = 2
#: Each part costs some seconds of imports. Parts that are much longer than others would run alone at the end.
FILES_PER_PART = 75
SLOWEST_FILES = 8
_LOOK_SECONDS = 0.5
_PROGRESS_SECONDS = 20.0
#: How pytest says which share of its tests has ended.
PERCENT = re.compile(r"\[ *(\d+)%\]")
_COUNTED = ("passed", "failed", "errors", "skipped")
#: Exit codes of pytest: 5 means that it found no tests.
_NO_TESTS = 5


@dataclass(frozen=True)
class Part:
    """Some folders of a layer, which one process tests."""

    layer: str
    folders: tuple[str, ...]
    files: int
    title: str


@dataclass
class Run:
    """The process of a part, and what it reported."""

    part: Part
    output: Path
    report: Path
    process: subprocess.Popen[bytes]
    begin: float = field(default_factory=time.monotonic)
    exit_code: int | None = None
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0
    costs: dict[str, Any] = field(default_factory=dict)

    def has_ended(self) -> bool:
        """Look whether the process has ended, and read its cost and its report then."""
        ended, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if not ended:
            return False
        self.exit_code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.wall_seconds = time.monotonic() - self.begin
        self.processor_seconds = usage.ru_utime + usage.ru_stime
        if self.report.is_file():
            self.costs = json.loads(self.report.read_text(encoding="utf-8"))
        return True

    @property
    def passed(self) -> bool:
        """Whether every test passed. A part without a report has crashed."""
        return bool(self.costs) and self.exit_code in {0, _NO_TESTS}

    @property
    def percent(self) -> str:
        """The progress that pytest printed last."""
        shown = PERCENT.findall(self.output.read_text(encoding="utf-8", errors="replace"))
        return f"{shown[-1]} %" if shown else "starts"

    def count(self, outcome: str) -> int:
        """Return the number of tests with an outcome."""
        return int(self.costs.get("outcomes", {}).get(outcome, 0))


def parts_of(layer: str, root: Path = ROOT) -> list[Part]:
    """Divide a layer into parts with about the same number of files.

    layer: Name of a folder in ``tests``.
    root: The checkout.
    """
    folder = root / "tests" / layer
    if LAYERS[layer]:
        return [Part(layer, (f"tests/{layer}",), len(list(folder.rglob("test_*.py"))), layer)]
    counts = {
        f"tests/{layer}/{each.name}": len(list(each.rglob("test_*.py"))) if each.is_dir() else 1
        for each in sorted(folder.iterdir())
        if each.is_dir() or each.match("test_*.py")
    }
    total = sum(counts.values())
    wanted = max(1, round(total / FILES_PER_PART))
    groups: list[list[str]] = [[] for _ in range(wanted)]
    sizes = [0] * wanted
    for name in sorted((each for each in counts if counts[each]), key=lambda each: (-counts[each], each)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(name)
        sizes[smallest] += counts[name]
    return [
        Part(layer, tuple(sorted(group)), size, f"{layer} {number} of {wanted}")
        for number, (group, size) in enumerate(zip(groups, sizes, strict=True), 1)
    ]


def start(part: Part, number: int, options: Sequence[str], root: Path) -> Run:
    """Start the process of a part."""
    folder = root / OUTPUT
    output, report = folder / f"{number:02}-{part.layer}.log", folder / f"{number:02}-{part.layer}.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *part.folders, "--cost-file", str(report), *options]
    with output.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
    return Run(part, output, report, process)


def run_all(parts: Iterable[Part], options: Sequence[str], root: Path = ROOT) -> tuple[list[Run], float]:
    """Run the parts, two at once, and return what they reported and the peak of their memory in bytes."""
    waiting, running, ended = list(parts), list[Run](), list[Run]()
    begin = shown = time.monotonic()
    peak = 0.0
    (root / OUTPUT).mkdir(parents=True, exist_ok=True)
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            number = len(running) + len(ended) + 1
            running.append(start(waiting.pop(0), number, options, root))
        peak = max(peak, _memory_of_children())
        for run in [each for each in running if each.has_ended()]:
            running.remove(run)
            ended.append(run)
            say(ended_line(run))
            if not run.passed:
                say(run.output.read_text(encoding="utf-8", errors="replace"))
            shown = time.monotonic()
        if running and time.monotonic() - shown > _PROGRESS_SECONDS:
            shown = time.monotonic()
            states = ", ".join(f"{run.part.title} {run.percent}" for run in running)
            say(f"{shown - begin:5.0f} s  {states}")
        time.sleep(_LOOK_SECONDS)
    return ended, peak


def ended_line(run: Run) -> str:
    """Say how a part ended."""
    counts = ", ".join(f"{run.count(each):,} {each}" for each in _COUNTED if run.count(each))
    words = counts or ("no tests" if run.passed else f"ended with exit code {run.exit_code}")
    return f"  {'ok' if run.passed else 'FAILED':6} {run.part.title}: {words} in {run.wall_seconds:.0f} s"


def summary(runs: Sequence[Run], wall_seconds: float, peak: float) -> Iterator[str]:
    """Yield the cost of each layer, the slowest files and the sums."""
    yield "layer      tests    processor    passed  failed"
    for layer in LAYERS:
        of_layer = [run for run in runs if run.part.layer == layer]
        if of_layer:
            tests = sum(int(run.costs.get("tests", 0)) for run in of_layer)
            failed = sum(run.count("failed") + run.count("errors") for run in of_layer)
            seconds = sum(run.processor_seconds for run in of_layer)
            passed = sum(run.count("passed") for run in of_layer)
            yield f"{layer:9} {tests:6,} {seconds:10.0f} s {passed:9,} {failed:7,}"
    files = {name: cost for run in runs for name, cost in run.costs.get("files", {}).items()}
    yield "slowest files, in seconds of processor time:"
    for name in sorted(files, key=lambda each: -files[each]["processor_seconds"])[:SLOWEST_FILES]:
        yield f"  {files[name]['processor_seconds']:6.1f}  {name} ({files[name]['tests']} tests)"
    seconds = sum(run.processor_seconds for run in runs)
    yield f"{wall_seconds:.0f} s, {seconds:.0f} s of processor time, at most {peak / 2**30:.1f} GiB of memory"
    crashed = sum(not run.passed and not run.count("failed") + run.count("errors") for run in runs)
    failed = sum(run.count("failed") + run.count("errors") for run in runs) + crashed
    yield f"{sum(run.count('passed') for run in runs)} passed, {failed} failed"


def _memory_of_children() -> float:
    """Return the memory of all descendants in bytes. Pages that processes share count once (PSS)."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:  # it has just ended
            continue
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the layers of the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"{', '.join(LAYERS)}; default: all")
    parser.add_argument(
        "--option", action="append", default=[], help="a further argument of pytest, such as --option=-x"
    )
    given = parser.parse_args(arguments)
    layers = given.layers or list(LAYERS)
    if unknown := set(layers) - LAYERS.keys():
        parser.error(f"got {', '.join(sorted(unknown))}; the layers are {', '.join(LAYERS)}")
    end_with_children()
    parts = sorted(
        (part for layer in layers for part in parts_of(layer)),
        key=lambda part: (not LAYERS[part.layer], -part.files),
    )
    files = sum(part.files for part in parts)
    say(
        f"{files} files of tests ({', '.join(layers)}), {len(parts)} processes, {AT_ONCE} at once. "
        "No network, account, GPU, compiler or engine is needed."
    )
    begin = time.monotonic()
    runs, peak = run_all(parts, given.option)
    for line in summary(runs, time.monotonic() - begin, peak):
        say(line)
    return 0 if all(run.passed for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
