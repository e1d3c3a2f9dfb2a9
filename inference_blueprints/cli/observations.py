"""How commands show what checks see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from inference_blueprints.cli.options import Output

if TYPE_CHECKING:
    from inference_blueprints.deployment.observation import Observation


def show(observations: Iterator[Observation], output: Output) -> None:
    """Print each observation as it comes, or all as JSON at the end; errors make the exit code 1.

    Parameters
    ----------
    observations
        What checks see, computed while it is shown.
    output
        Who reads it.

    Raises
    ------
    typer.Exit
        With code 1 if any is an error.
    """
    seen = []
    for observation in observations:
        seen.append(observation)
        if output is Output.TEXT:
            print(observation, flush=True)
    if output is Output.JSON:
        print(json.dumps([asdict(observation) for observation in seen], indent=2))
    if any(observation.severity == "error" for observation in seen):
        raise typer.Exit(1)
