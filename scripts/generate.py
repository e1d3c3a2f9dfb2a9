"""Rewrite all generated files of the tree in which this script is: ``make generate``.

A generator is a script ``write_*.py`` with a function ``main``. It reads nothing but the tree. Scripts that
need an engine, a registry or an account are called ``record_*.py``. Generators run in two processes at once.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).resolve().parent.parent
_PROCESSES: Final = 2
#: Others read what these write: charts are rendered with their schemas.
FIRST: Final = ("write_chart_schemas",)
#: If the slowest begin first, both processes end at about the same time.
_SLOW: Final = ("write_recorded_templates", "write_rendered_charts", "write_blueprint_pages")


def generators(tree: Path = TREE) -> tuple[list[str], list[str]]:
    """Return the names of the generators that run before the others, and of the others."""
    names = sorted(path.stem for path in (tree / "scripts").glob("write_*.py"))
    others = [name for name in names if name not in FIRST]
    return [name for name in names if name in FIRST], sorted(others, key=lambda name: name not in _SLOW)


def run(name: str) -> str:
    """Run a generator, and return what went wrong; nothing if all is well."""
    start = time.monotonic()
    try:
        importlib.import_module(name).main()
    except SystemExit as stop:
        return f"{name}: {stop}"
    except Exception:  # noqa: BLE001 - it is reported, and other generators go on
        return f"{name}:\n{traceback.format_exc()}"
    print(f"  {name} {time.monotonic() - start:.1f} s", flush=True)
    return ""


def generate(stages: Iterable[list[str]], executor: Executor, run: Callable[[str], str] = run) -> list[str]:
    """Run stages of generators one after the other, and return what went wrong in the first that fails."""
    for names in stages:
        runs = [executor.submit(run, name) for name in names]
        if problems := [each.result() for each in as_completed(runs) if each.result()]:
            return problems
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
        problems = generate(stages, executor)
    if problems:
        sys.exit("\n".join(problems))
    print(f"all files are generated ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
