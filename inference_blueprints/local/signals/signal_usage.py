"""How a person reads the signal store of a run that stays up."""

from __future__ import annotations

import shlex
from pathlib import Path

from inference_blueprints.local.run_state import RunningSignals


def signals_usage_lines(signals: RunningSignals, run_directory: Path) -> tuple[str, ...]:
    """Return where the store answers, and a command for a POSIX shell that reads it.

    Parameters
    ----------
    run_directory
        Folder of the run.
    """
    return (
        f"signals: Valkey at {signals.address.host}:{signals.address.port}, for users of the cache alone",
        f"blueprints local signals NAME KEY --run-directory {shlex.quote(str(run_directory))}",
    )
