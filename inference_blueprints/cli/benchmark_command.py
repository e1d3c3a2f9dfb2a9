"""The command that measures a live endpoint: benchmark."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load, model_index
from inference_blueprints.cli.options import ModelOption, Output, OutputOption, TraceOption

if TYPE_CHECKING:
    from inference_blueprints.planning.rows import PlanTable


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line.

    Parameters
    ----------
    app
        The command line's root.
    """
    app.command("benchmark")(benchmark)


def benchmark(
    url: Annotated[str, typer.Argument(metavar="URL", help="The endpoint, such as http://127.0.0.1:8000.")],
    *,
    blueprint: Annotated[
        str,
        typer.Option(
            "--blueprint", metavar="NAME_OR_PATH", help="What serves there: workload, objectives and price."
        ),
    ],
    model: ModelOption = None,
    trace: TraceOption = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1.0, max=3600.0, help="How long requests arrive at the most.")
    ] = 60.0,
    requests: Annotated[
        int, typer.Option("--requests", min=2, max=10_000, help="How many requests at the most.")
    ] = 2000,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask a live endpoint as the workload or a trace of yours does; the columns are those of tune."""
    from inference_blueprints.benchmarking import words
    from inference_blueprints.benchmarking.benchmark import benchmark as run

    loaded = load(blueprint)
    found = run(
        loaded.blueprint,
        model_index(loaded, model),
        url,
        lambda line: print(line, file=sys.stderr),
        trace=trace,
        seconds=seconds,
        requests=requests,
    )
    if output is Output.JSON:
        print(json.dumps(words.as_dict(found), indent=2))
    else:
        _print(words.title(found), (words.comparison(found), words.latencies(found)))
    if found.measurement.failures:
        raise typer.Exit(1)


def _print(title: str, tables: Sequence[PlanTable]) -> None:
    from rich.console import Console
    from rich.text import Text

    from inference_blueprints.planning.tables import terminal_table

    console = Console()
    console.print(Text(title, style="bold"))
    for table in tables:
        console.print(terminal_table(table))
        for note in table.notes:
            console.print(Text(note))
