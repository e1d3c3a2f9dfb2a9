"""Reads signals with the platform's library, `runtime/signals`, in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from inference_blueprints.operate.signals.signal_store_address import StoreAddress
from inference_contracts.errors import UserError
from inference_runtime import runtime_directory

#: A signal in the format of `runtime/signals/__main__.py`: name, key and the record.
Record = Mapping[str, Any]
# The program's exit codes: all values found, or some missing; and no answer.
_ANSWERED: Final = (0, 3)
_NO_ANSWER: Final = 2
#: What to do, by the first words of the program's message.
_ADVICE: Final = {
    "the store refuses": "your role needs elasticache:Connect on the cache and on its reading user",
    "the store does not answer": "run this within the platform's VPC, or use a tunnel (--address)",
}


def read_signals(
    address: StoreAddress,
    name: str,
    keys: Sequence[str],
    *,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Record]:
    """Return the records of keys, by key; one without a value is left out.

    keys: Keys, which must not be empty or have line breaks.
    Raises UserError if the store does not answer or refuses, or a key is not valid.
    """
    for key in keys:
        if not key or "\n" in key:
            raise UserError(
                "got an empty key; remove it"
                if not key
                else f"got key {key!r}, keys must not have line breaks; remove it"
            )
    program = {"PYTHONPATH": str(runtime_directory()), "PYTHONUTF8": "1"}
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
        # After an unexpected error, the last line has the reason.
        words = ran.stderr if ran.returncode == _NO_ANSWER else ran.stderr.rstrip().rpartition("\n")[2]
        raise UserError(f"signal store at {place}: {_with_advice(' '.join(words.split()))}")
    records = [json.loads(line) for line in ran.stdout.split("\n") if line]
    return {record["key"]: record for record in records}


def _with_advice(reason: str) -> str:
    """Return the reason, with advice if there is any."""
    advice = next((advice for words, advice in _ADVICE.items() if reason.startswith(words)), None)
    return f"{reason}; {advice}" if advice else reason
