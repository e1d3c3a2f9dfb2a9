"""Finds the benchmarks: every module of a package that has a function ``measure``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from benchmarks.harness.figure import Figure


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
