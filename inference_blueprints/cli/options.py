"""Arguments and options that several commands share, and standard output of `--output json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

# Standard output of `--output json`: one JSON document per command.


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2), flush=True)


def print_progress(line: str) -> None:
    """Print a line on standard error, so that standard output holds the result only."""
    print(line, file=sys.stderr, flush=True)


class Output(StrEnum):
    """Format of the output."""

    TEXT = "text"
    JSON = "json"


class ExitCode(IntEnum):
    """Exit codes of every command. `docs/json-output.md` has them as a table."""

    OK = 0
    """The command did what it was asked for."""
    FAILED = 1
    """An input, the account or this machine is wrong, or a check found an error."""
    USAGE = 2
    """The command line is wrong: an unknown command or option, a missing argument, a wrong type."""
    UNEXPECTED = 70
    """An error in this program: EX_SOFTWARE of sysexits.h."""
    INTERRUPTED = 130
    """Ctrl-C ended it, as shells report it: 128 and the number of the signal. SIGTERM is 143, SIGHUP 129."""


NameOrPath = Annotated[
    str, typer.Argument(metavar="NAME_OR_PATH", help="Name of a shipped blueprint, or path of a YAML file.")
]
NameOrInput = Annotated[
    str,
    typer.Argument(
        metavar="NAME_OR_PATH",
        help="Name of a shipped blueprint, or path of a YAML file; - for standard input.",
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Format of the output.")]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", help="Name of the model, or its public name; needed if there are several."
    ),
]
TraceOption = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Your own recorded requests: Mooncake .jsonl or .csv, also gzipped (.gz).",
    ),
]
RunDirectory = Annotated[
    Path, typer.Option("--run-directory", help="Folder for the run's state, logs, templates and reports.")
]
DEFAULT_RUN_DIRECTORY = Path("build/run")


def machine_output_wanted(arguments: list[str]) -> bool:
    """Return whether the arguments ask for JSON; it also works for arguments that cannot be parsed."""
    return option_value(arguments, "--output", "-o") == Output.JSON or f"-o{Output.JSON}" in arguments


def option_value(arguments: Sequence[str], *names: str) -> str | None:
    """Return the value of an option in a command line: `--name value` or `--name=value`."""
    for option, value in pairwise([*arguments, ""]):
        if option in names:
            return value
        name, equals, joined = option.partition("=")
        if equals and name in names:
            return joined
    return None
