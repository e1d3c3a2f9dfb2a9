"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """Who reads the output."""

    TEXT = "text"
    JSON = "json"


NameOrPath = Annotated[
    str, typer.Argument(metavar="NAME_OR_PATH", help="Name of a shipped blueprint, or path of a YAML file.")
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="text for people, json for machines.")]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Which model, where there are several.")
]
TraceOption = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="FILE", help="Requests of yours: Mooncake's .jsonl, or .csv; also with .gz."
    ),
]
RunDirectory = Annotated[
    Path, typer.Option("--run-directory", help="Folder for the run's state, logs, templates and reports.")
]
DEFAULT_RUN_DIRECTORY = Path("build/run")


def machine_output_wanted(arguments: list[str]) -> bool:
    """Return whether the command line asks for JSON, also where parsing it came to nothing.

    Parameters
    ----------
    arguments
        The words after the program's name.
    """
    wanted = {("--output", "json"), ("-o", "json")}
    return "--output=json" in arguments or any(pair in wanted for pair in pairwise(arguments))
