"""Prints the results of checks."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import typer

from inference_blueprints.cli.options import ExitCode, Output, print_json

if TYPE_CHECKING:
    from inference_blueprints.operate.check_results import CheckResult


def show(results: Iterator[CheckResult], output: Output) -> None:
    """Print each result immediately, or all as JSON at the end; the exit code is 1 if one is an error.

    results: Results of checks; each check runs when its result is printed.
    Raises typer.Exit with code 1 if a result is an error.
    """
    seen = []
    for result in results:
        seen.append(result)
        if output is Output.TEXT:
            print(_folded(result) if sys.stdout.isatty() else result, flush=True)
    if output is Output.JSON:
        print_json([asdict(result) for result in seen])
    if any(result.severity == "error" for result in seen):
        raise typer.Exit(ExitCode.FAILED)


def _folded(result: CheckResult) -> str:
    """Return a result in rows of the terminal, which break between words. A command is one line, to copy."""
    margin = " " * 9
    rows = textwrap.wrap(
        str(replace(result, command=None)),
        shutil.get_terminal_size().columns,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([*rows, *([f"{margin}run: {result.command}"] if result.command else [])])
