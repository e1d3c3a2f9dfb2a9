"""What the starts of other gateways share: how a refused installation ends, and when they answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.harness.figure import BenchmarkError
from benchmarks.harness.measured_door import MeasuredWay, requests_at
from inference_contracts.errors import UserError
from inference_local.processes.child_processes import ProcessDied, ProcessGroup

_PATIENCE_SECONDS: Final = 180.0


@contextmanager
def installing(title: str) -> Iterator[None]:
    """Turn a refused installation into a benchmark that failed, so that no row says that a goal is met.

    title: Name of what is installed.
    """
    try:
        yield
    except UserError as error:
        report(str(error))
        raise BenchmarkError(
            f"{title} could not be installed, so nothing was measured: the output of `make bench` says why"
        ) from error


def report(line: str) -> None:
    """Print a line about an installation."""
    print(line, file=sys.stderr, flush=True)


def until_it_answers(way: MeasuredWay, processes: ProcessGroup) -> MeasuredWay:
    """Return the way when it answers requests. Raises BenchmarkError if it does not."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while requests_at(way, 1, 1.0).failed:
        try:
            processes.check()
        except ProcessDied as died:
            report(str(died))
            raise BenchmarkError(f"{way.name} does not run: {died.name} has ended") from died
        if time.monotonic() > end:
            raise BenchmarkError(f"{way.name} did not answer within {_PATIENCE_SECONDS:.0f} s")
    return way
