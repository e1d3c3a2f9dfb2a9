"""Measures synthesis in one warm process, without the start of Python and Node.

Prints a JSON list with the median seconds of each blueprint given: processor time of Python and Node
together, which other work on the machine hardly changes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import psutil

from app import build_app
from benchmarks.harness.figure import interleaved_medians
from inference_blueprints.loading import load_blueprint

#: Copying assets takes the same time for every blueprint.
_CONTEXT = {"aws:cdk:disable-asset-staging": True}


def main(rounds: int, paths: list[str]) -> None:
    """Synthesise each blueprint in turns.

    rounds: Number of measurements of each.
    """
    seconds(paths[0])
    print(json.dumps(interleaved_medians([partial(seconds, path) for path in paths], rounds)))


def seconds(path: str) -> float:
    """Return the processor seconds from a file to its templates."""
    with tempfile.TemporaryDirectory() as directory:
        start = processor_seconds()
        build_app(load_blueprint(path), outdir=Path(directory), context=_CONTEXT).synth()
        return processor_seconds() - start


def processor_seconds() -> float:
    """Return the processor seconds of this process and its children, including Node."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(each.user + each.system for each in times)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
