"""Runs the benchmarks and writes their results: ``python -m benchmarks [--only NAME,…]``."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path

import benchmarks
from benchmarks.harness.figure import ROOT, BenchmarkError, Figure
from benchmarks.harness.recorded_results import (
    Results,
    UnknownBenchmarkError,
    choose,
    discover,
    failed,
    markdown,
    measured,
)
from inference_contracts.number_text import number


def main(arguments: list[str]) -> int:
    """Run benchmarks, print each figure at once, and write results and page.

    arguments: The command-line arguments.
    Returns: Exit code: 1 if a goal is missed or a benchmark fails, 2 if a benchmark does not exist.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="NAME,…", help="measure only these and keep the results of the others"
    )
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args(arguments)
    found = discover(benchmarks)
    try:
        chosen = choose(found, [name for name in options.only.split(",") if name])
    except UnknownBenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    # Processes keep compiled modules, as for users: else each compiles ours again, but no library.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    missed = False
    for benchmark in chosen:
        try:
            figures = benchmark.measure()
        except Exception as error:  # noqa: BLE001 - whatever ends a measurement, the page says that it failed
            reason = str(error) if isinstance(error, BenchmarkError) else traceback.format_exc()
            print(f"{benchmark.name}: {reason}", file=sys.stderr)
            missed = True
            reason = str(error) or type(error).__name__
            results = failed(Results.read(options.results), benchmark.name, reason)
        else:
            for figure in figures:
                print(_line(figure), flush=True)
            missed = missed or any(figure.met is False for figure in figures)
            before = Results.read(options.results)
            results = measured(before, benchmark.name, figures, found, benchmark.code())
        results.write(options.results)
        options.page.write_text(markdown(results, found), encoding="utf-8")
    return int(missed)


def _line(figure: Figure) -> str:
    """Return a figure on one line."""
    ratio = ""
    if figure.ratio is not None and figure.baseline is not None:
        ratio = f", {figure.ratio:.2f} of {number(figure.baseline)} {figure.unit}"
    goal = (
        "" if figure.goal is None else f", goal at most {figure.goal:g}: {'met' if figure.met else 'MISSED'}"
    )
    return f"{figure.name}: {number(figure.value)} {figure.unit}{ratio}{goal}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
