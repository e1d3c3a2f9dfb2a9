"""Rewrite all generated files of the tree in which this script is: ``make generate``.

A generator is a script ``write_*.py`` with a function ``main``. It reads nothing but the tree. Scripts that
need an engine, a registry or an account are called ``record_*.py``. Generators run in two processes at once.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from import_graph import python_path

TREE: Final = Path(__file__).resolve().parent.parent
_PROCESSES: Final = 2
#: Generators that read or change what others write, and these others.
AFTER: Final = {
    "write_choosing_figures": ("write_benchmarks_page",),
    "write_engine_differences": ("write_engine_results",),
    "write_engine_exceptions": ("write_engine_results",),
    "write_rendered_charts": ("write_chart_schemas",),
}
#: If the slowest begin first, both processes end at about the same time.
_SLOW: Final = (
    "write_recorded_templates",
    "write_access_page",
    "write_engine_results",
    "write_benchmarks_page",
)


@dataclass(frozen=True, slots=True)
class GeneratorRun:
    """A run of a generator: how long it took, and what went wrong; nothing if all is well."""

    name: str
    seconds: float
    problem: str = ""


def generators(tree: Path = TREE) -> list[str]:
    """Return the names of the generators of a tree, the slowest first."""
    names = sorted(path.stem for path in (tree / "scripts").glob("write_*.py"))
    return sorted(names, key=lambda name: _SLOW.index(name) if name in _SLOW else len(_SLOW))


def run(name: str) -> GeneratorRun:
    """Run a generator. What it prints is shown only if it fails: the CDK warns at length."""
    start = time.monotonic()
    with _captured() as output:
        try:
            importlib.import_module(name).main()
        except SystemExit as stop:
            problem = str(stop)
        except Exception:  # noqa: BLE001 - it is reported, and the other generators go on
            output.seek(0)
            problem = output.read() + traceback.format_exc()
        else:
            problem = ""
    return GeneratorRun(name, time.monotonic() - start, problem)


@contextmanager
def _captured() -> Iterator[IO[str]]:
    """Send what this process and those that it starts print into a file."""
    with tempfile.TemporaryFile("w+") as file:
        streams = [(number, os.dup(number)) for number in (1, 2)]
        for number, _ in streams:
            os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            for number, before in streams:
                os.dup2(before, number)
                os.close(before)


def generate(
    names: list[str], executor: Executor, run: Callable[[str], GeneratorRun] = run
) -> list[GeneratorRun]:
    """Run generators, those of `AFTER` in their order, and return the failed runs."""
    sorter = TopologicalSorter({name: AFTER.get(name, ()) for name in names})
    sorter.prepare()
    running: set[Future[GeneratorRun]] = set()
    failed: list[GeneratorRun] = []
    while True:
        ready = sorted(sorter.get_ready(), key=names.index)
        running |= {executor.submit(run, name) for name in ready}
        if not running:
            return failed
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        for each in (future.result() for future in ended):
            print(f"  {each.name}: {'FAILED' if each.problem else f'{each.seconds:.1f} s'}", flush=True)
            if each.problem:
                failed.append(each)  # and what comes after it never begins
            else:
                sorter.done(each.name)


@contextmanager
def _processes() -> Iterator[Executor]:
    """Yield processes that import everything from this tree, whatever is installed in the environment."""
    path = os.environ["PYTHONPATH"] = python_path(TREE)
    sys.path[:0] = path.split(os.pathsep)  # a spawned process gets this path, not that of the environment
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_PROCESSES, context, initializer=_refuse_other_tree) as executor:
        yield executor


def _refuse_other_tree() -> None:
    found = find_spec("inference_blueprints")
    if found is None or not Path(found.origin or "").is_relative_to(TREE):
        raise ImportError(f"inference_blueprints is not imported from {TREE}, but from {found}")


def main() -> None:
    """Run all generators. Raises SystemExit if one fails."""
    start = time.monotonic()
    names = generators()
    print(f"running {len(names)} generators", flush=True)
    with _processes() as executor:
        failed = generate(names, executor)
    if failed:
        sys.exit("\n".join(f"{each.name}: {each.problem}" for each in failed))
    print(f"all files are generated ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
