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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

TREE: Final = Path(__file__).resolve().parent.parent
_PROCESSES: Final = 2
#: Others read what these write: pages have figures of the benchmarks, and charts are rendered with schemas.
FIRST: Final = ("write_benchmarks_page", "write_chart_schemas")
#: If the slowest begin first, both processes end at about the same time.
_SLOW: Final = ("write_recorded_templates", "write_rendered_charts", "write_blueprint_pages")


@dataclass(frozen=True, slots=True)
class GeneratorRun:
    """A run of a generator: how long it took, and what went wrong; nothing if all is well."""

    name: str
    seconds: float
    problem: str = ""


def generators(tree: Path = TREE) -> tuple[list[str], list[str]]:
    """Return the names of the generators that run before the others, and of the others."""
    names = sorted(path.stem for path in (tree / "scripts").glob("write_*.py"))
    others = sorted(set(names).difference(FIRST, _SLOW))
    return [name for name in names if name in FIRST], [name for name in _SLOW if name in names] + others


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
    stages: Iterable[list[str]], executor: Executor, run: Callable[[str], GeneratorRun] = run
) -> list[GeneratorRun]:
    """Run stages of generators one after the other, and return the failed runs of the first that fails."""
    for names in stages:
        failed = []
        for each in as_completed([executor.submit(run, name) for name in names]):
            ended = each.result()
            print(f"  {ended.name}: {'FAILED' if ended.problem else f'{ended.seconds:.1f} s'}", flush=True)
            failed += [ended] if ended.problem else []
        if failed:
            return failed
    return []


@contextmanager
def _processes() -> Iterator[Executor]:
    """Yield processes that import everything from this tree, whatever is installed in the environment."""
    roots = [str(TREE), *(str(TREE / name) for name in ("constructs", "runtime", "scripts"))]
    os.environ["PYTHONPATH"] = os.pathsep.join(roots)
    sys.path[:0] = roots  # a spawned process gets this path, not that of the environment
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_PROCESSES, context, initializer=_refuse_other_tree) as executor:
        yield executor


def _refuse_other_tree() -> None:
    found = find_spec("inference_blueprints")
    if found is None or not Path(found.origin or "").is_relative_to(TREE):
        raise ImportError(f"inference_blueprints is not imported from {TREE}, but from {found}")


def main() -> None:
    """Run all generators.

    Raises
    ------
    SystemExit
        If one fails.
    """
    start = time.monotonic()
    stages = generators()
    print(f"running {sum(map(len, stages))} generators", flush=True)
    with _processes() as executor:
        failed = generate(stages, executor)
    if failed:
        sys.exit("\n".join(f"{each.name}: {each.problem}" for each in failed))
    print(f"all files are generated ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
