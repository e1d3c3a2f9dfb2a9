"""Reads signals by the platform's own library, `runtime/signals`, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from inference_blueprints import resources
from inference_blueprints.deployment.signals.signal_store_address import StoreAddress
from inference_blueprints.errors import UserError

#: A signal as `runtime/signals/__main__.py` prints it: name, key and the record.
Record = Mapping[str, Any]
# The program's exit codes: everything is there, or something is missing; and there is no answer.
_ANSWERED: Final = (0, 3)
_NO_ANSWER: Final = 2
#: What to do, by what the program says first.
_ADVICE: Final = {
    "the store refuses": "your role needs elasticache:Connect on the cache and on its user who reads",
    "the store does not answer": "it is reached from within the platform's VPC, or by a tunnel (--address)",
}


def read_signals(
    address: StoreAddress,
    name: str,
    keys: Sequence[str],
    *,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Record]:
    """Return the records of keys, by key; one without a value is left out.

    Parameters
    ----------
    address
        Where the store is.
    name
        Name of the signal.
    keys
        Keys; none is empty or has a line break.

    Raises
    ------
    UserError
        If the store does not answer, or refuses, or a key cannot be asked for.
    """
    for key in keys:
        if not key or "\n" in key:
            raise UserError(
                "got an empty key" if not key else f"got key {key!r}, a key has no line break here"
            )
    program = {"PYTHONPATH": str(resources.runtime_directory()), "PYTHONUTF8": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "signals", name],
        input="".join(f"{key}\n" for key in keys),
        env={**environment, **address.environment(), **program},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ran.returncode not in _ANSWERED:
        place = address.tunnel or f"{address.host}:{address.port}"
        # Of what nobody thought of, the last line says what it was.
        words = ran.stderr if ran.returncode == _NO_ANSWER else ran.stderr.rstrip().rpartition("\n")[2]
        raise UserError(f"signal store at {place}: {_with_advice(' '.join(words.split()))}")
    records = [json.loads(line) for line in ran.stdout.split("\n") if line]
    return {record["key"]: record for record in records}


def _with_advice(reason: str) -> str:
    """Return why there is no answer, and what to do where that is not said."""
    advice = next((advice for words, advice in _ADVICE.items() if reason.startswith(words)), None)
    return f"{reason}; {advice}" if advice else reason
