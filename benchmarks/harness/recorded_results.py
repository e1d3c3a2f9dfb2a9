"""Benchmarks and their results: finds modules with a function ``measure``, and writes what they measured."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.harness.figure import Figure
from inference_contracts.number_text import number


class UnknownBenchmarkError(Exception):
    """An unknown benchmark. The message lists the known ones."""


@dataclass(frozen=True, slots=True)
class BenchmarkModule:
    """One file of the folder."""

    name: str
    description: str
    measure: Callable[[], list[Figure]]
    """Takes the measurement and returns its figures."""


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
        found[module_info.name] = BenchmarkModule(module_info.name, description, module.measure)
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

A ratio compares the medians of two measurements, which were taken in turns in one run on the same machine. It
depends less on the machine than the values do. *Simulated* figures come from simulated engines, not from
accelerators.
"""
_COLUMNS = ("figure", "value", "baseline", "ratio", "goal", "met")

Entry = dict[str, Any]


def merge(path: Path, figures: Sequence[Figure], benchmark: str, benchmarks: Collection[str]) -> list[Entry]:
    """Write a benchmark's figures to a results file, and remove all its earlier ones.

    path: The file. It may be missing.
    figures: The new figures.
    benchmark: Its name.
    benchmarks: Names of all benchmarks. One may begin with another one's name.
    Returns: All entries of the file, sorted by name.
    """
    earlier: list[Entry] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    by_name = {
        entry["name"]: entry for entry in earlier if benchmark_of(entry["name"], benchmarks) != benchmark
    }
    cores = os.cpu_count()
    by_name |= {figure.name: {**figure.as_dict(), "cores": cores} for figure in figures}
    entries = [by_name[name] for name in sorted(by_name)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    return entries


def benchmark_of(figure: str, benchmarks: Collection[str]) -> str | None:
    """Return the benchmark whose name a figure's name begins with: the longest, or None."""
    return max((each for each in benchmarks if figure.startswith(each)), key=len, default=None)


def markdown(entries: Sequence[Entry], descriptions: Mapping[str, str]) -> str:
    """Return the page for people.

    entries: Entries of the results file.
    descriptions: Description of each benchmark, by name.
    Returns: Markdown with a table of the figures and one section per benchmark.
    """
    rows = [_row(entry) for entry in entries]
    rule = tuple("---" for _ in _COLUMNS)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (_COLUMNS, rule, *rows))
    cores = sorted({entry["cores"] for entry in entries})
    machine = f"Measured on a machine with {' and '.join(map(str, cores))} cores."
    paragraphs = [f"## {name}\n\n{description}\n" for name, description in sorted(descriptions.items())]
    return "\n".join([_HEADER, f"{machine}\n", f"{table}\n", *paragraphs])


def _row(entry: Entry) -> tuple[str, ...]:
    """Return one row of the table."""
    unit = entry["unit"]
    baseline, ratio, goal = entry["baseline"], entry["ratio"], entry["goal"]
    name = entry["name"] + (" (simulated)" if entry["simulated"] else "")
    limit = "" if goal is None else f"at most {goal:g}" + ("" if ratio is not None else f" {unit}")
    return (
        name,
        f"{number(entry['value'])} {unit}",
        "" if baseline is None else f"{number(baseline)} {unit}",
        "" if ratio is None else f"{ratio:.2f}",
        limit,
        {True: "yes", False: "**no**", None: ""}[entry["met"]],
    )
