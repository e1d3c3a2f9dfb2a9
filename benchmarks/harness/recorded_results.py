"""Benchmarks and their results: finds modules with a function ``measure``, and writes what they measured."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from import_graph import reachable

from benchmarks.harness.figure import Figure, run
from inference_contracts.number_text import number
from inference_contracts.units import GIB


class UnknownBenchmarkError(Exception):
    """An unknown benchmark. The message lists the known ones."""


@dataclass(frozen=True, slots=True)
class BenchmarkModule:
    """One file of the folder."""

    name: str
    description: str
    measure: Callable[[], list[Figure]]
    """Takes the measurement and returns its figures."""
    file: Path
    """Its file."""
    programs: Sequence[str] = ()
    """Its variable `PROGRAMS`: Python files that its processes begin with, and folders of Java sources."""

    @property
    def root(self) -> Path:
        """The checkout."""
        return self.file.parent.parent

    def files(self) -> list[str]:
        """Return the files that it measures, relative to the checkout."""
        return measured_files(self.root, self.file.relative_to(self.root).as_posix(), self.programs)

    def code(self) -> str:
        """Return the digest of what it measures."""
        return code_digest(self.root, self.files())


def discover(package: ModuleType) -> dict[str, BenchmarkModule]:
    """Return a package's benchmarks by name.

    package: The package. Its subpackages and modules that begin with an underscore are skipped.
    """
    found = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.ispkg or module_info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        description = inspect.getdoc(module) or ""
        programs = getattr(module, "PROGRAMS", ())
        file = Path(module.__file__ or "").resolve()
        found[module_info.name] = BenchmarkModule(
            module_info.name, description, module.measure, file, programs
        )
    return found


def choose(found: dict[str, BenchmarkModule], only: Sequence[str]) -> list[BenchmarkModule]:
    """Return the benchmarks with the given names. Without names, return all.

    Raises UnknownBenchmarkError if a name is unknown.
    """
    unknown = [name for name in only if name not in found]
    if unknown:
        raise UnknownBenchmarkError(f"got benchmark {', '.join(unknown)}; known are {', '.join(found)}")
    return [found[name] for name in only] if only else list(found.values())


_HEADER = """# Benchmarks

`make bench` writes this page, and overwrites changes by hand. `make bench ONLY=name,…` measures only some
figures and keeps the others.

A ratio is the value divided by the baseline of its row. If both are times or memory of processes, they are
medians of measurements that were taken in turns in one run, so it depends less on the machine than they do.
In other rows the baseline is another replay, a computed bound or a published figure; the section of the
benchmark says which. *Simulated* figures come from simulated engines, not from accelerators.

`measured` is the date and the commit of a measurement; until 2026-11-28, it is the commit that recorded it.
*Changed since* means that today's code is not the measured one: the benchmark's file or a module that it
imports, directly or over others, is different now. Such a row says what an earlier version did. `make
outdated` lists what changed. *Failed* means that the last attempt to measure gave no figure: what is in the
row is older, and does not count as met.
"""
_COLUMNS = ("figure", "value", "baseline", "ratio", "goal", "met", "measured", "machine")

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """The results file: figures, and of each benchmark when and where they were measured."""

    runs: dict[str, dict[str, Any]]
    """By benchmark: `date`, `commit` and `machine` of its figures, and `code`, the digest of what it is of.
    `failed` has date, commit and reason of a later attempt that failed."""
    figures: list[Entry]
    """Figures, sorted by name."""

    @classmethod
    def read(cls, path: Path) -> Results:
        """Return what a file holds; nothing if it is missing."""
        if not path.exists():
            return cls({}, [])
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"runs": self.runs, "figures": self.figures}
        path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def measured(
    before: Results, benchmark: str, figures: Sequence[Figure], benchmarks: Collection[str], code: str
) -> Results:
    """Return the results with a benchmark's new figures, and without all its earlier ones.

    benchmark: Its name.
    benchmarks: Names of all benchmarks. One may begin with another one's name.
    code: Digest of what was measured.
    """
    kept = [entry for entry in before.figures if benchmark_of(entry["name"], benchmarks) != benchmark]
    entries = sorted([*kept, *(figure.as_dict() for figure in figures)], key=lambda entry: entry["name"])
    return Results(before.runs | {benchmark: {**_now(), "machine": machine(), "code": code}}, entries)


def failed(before: Results, benchmark: str, reason: str) -> Results:
    """Return the results with a failed attempt to measure a benchmark. Its earlier figures stay."""
    run = before.runs.get(benchmark, {})
    return Results(before.runs | {benchmark: {**run, "failed": {**_now(), "reason": reason}}}, before.figures)


def _now() -> dict[str, str]:
    """Return the date, and the commit of the checkout."""
    results = ("benchmarks/results.json", "docs/benchmarks.md", "docs/choosing.md")
    changed = run(["git", "status", "--porcelain", "--", ".", *(f":!{name}" for name in results)]).strip()
    commit = run(["git", "rev-parse", "--short=8", "HEAD"]).strip() + (" with changes" if changed else "")
    return {"date": datetime.now(UTC).date().isoformat(), "commit": commit}


def machine() -> str:
    """Return the processor, the number of cores and the memory of this machine."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    gib = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB)
    return f"{model or platform.machine()}, {os.cpu_count()} cores, {gib} GiB"


def measured_files(root: Path, file: str, programs: Iterable[str] = ()) -> list[str]:
    """Return the files that a benchmark measures: itself, its programs, and what they import.

    root: The checkout.
    file: The benchmark, relative to it, as are `programs`.
    programs: Python files and folders of Java sources.
    """
    found = reachable(root, file)
    for program in programs:
        if program.endswith(".py"):
            found |= reachable(root, program)
        java = (path.relative_to(root) for path in (root / program).rglob("*.java"))
        found |= {path.as_posix() for path in java if "target" not in path.parts}
    return sorted(found)


def code_digest(root: Path, files: Iterable[str]) -> str:
    """Return a digest of the names and contents of files, which are relative to `root`."""
    digest = sha256()
    for name in files:
        digest.update(f"{name} {sha256((root / name).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def benchmark_of(figure: str, benchmarks: Collection[str]) -> str | None:
    """Return the benchmark whose name a figure's name begins with: the longest, or None."""
    return max((each for each in benchmarks if figure.startswith(each)), key=len, default=None)


def markdown(results: Results, found: Mapping[str, BenchmarkModule]) -> str:
    """Return the page for people.

    found: All benchmarks, by name.
    Returns: Markdown with a table of the figures and one section per benchmark.
    """
    machines = sorted({run["machine"] for run in results.runs.values() if "machine" in run})
    letters = {name: chr(ord("A") + place) for place, name in enumerate(machines)}
    changed = {name for name, each in found.items() if each.code() != results.runs.get(name, {}).get("code")}
    rows = []
    for entry in results.figures:
        name = benchmark_of(entry["name"], found) or ""
        rows.append(_row(entry, results.runs[name], letters, changed=name in changed))
    rule = tuple("---" for _ in _COLUMNS)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (_COLUMNS, rule, *rows))
    legend = "\n".join(f"- Machine {letter}: {name}" for name, letter in letters.items())
    paragraphs = [
        f"## {name}\n\n{each.description}\n{_failure(results.runs.get(name, {}))}"
        for name, each in sorted(found.items())
    ]
    return "\n".join([_HEADER, f"{legend}\n", f"{table}\n", *paragraphs])


def _failure(run: Mapping[str, Any]) -> str:
    """Return what the section of a benchmark says of its run, if that was none or the last one failed."""
    if not run:
        return "\n**Not measured**: the results have no figure of it.\n"
    if "failed" not in run:
        return ""
    attempt = run["failed"]
    reason = " ".join(attempt["reason"].split())
    return f"\n**Failed** on {attempt['date']}, `{attempt['commit']}`: {reason}\n"


def _row(
    entry: Entry, run: Mapping[str, Any], letters: Mapping[str, str], *, changed: bool
) -> tuple[str, ...]:
    """Return one row of the table."""
    unit = entry["unit"]
    baseline, ratio, goal = entry["baseline"], entry["ratio"], entry["goal"]
    name = entry["name"] + (" (simulated)" if entry["simulated"] else "")
    limit = "" if goal is None else f"at most {goal:g}" + ("" if ratio is not None else f" {unit}")
    met = {True: "yes", False: "**no**", None: ""}[entry["met"]]
    return (
        name,
        f"{number(entry['value'])} {unit}",
        "" if baseline is None else f"{number(baseline)} {unit}",
        "" if ratio is None else f"{ratio:.2f}",
        limit,
        "**failed**" if "failed" in run else met,
        f"{run['date']}, `{run['commit']}`" + (", changed since" if changed else ""),
        letters[run["machine"]],
    )
