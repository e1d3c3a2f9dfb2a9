"""How to read the signal store of a run that keeps running."""

from __future__ import annotations

import shlex
from pathlib import Path

from inference_local.run_state import RunningSignals


def signals_usage_lines(signals: RunningSignals, run_directory: Path, program: str) -> tuple[str, ...]:
    """Return the address of the store, and a POSIX shell command that reads it.

    program: How this shell calls the command `blueprints`.
    """
    return (
        f"signals: Valkey at {signals.address.host}:{signals.address.port}, only for users of the cache",
        f"{program} local signals NAME KEY --run-directory {shlex.quote(str(run_directory))}",
    )
