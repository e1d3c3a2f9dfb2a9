"""The signal store of a local run: its address, how to read it, and what it has of a job's answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints.operate.signals import store_address, stores_stack
from inference_local.emulator.emulator import Emulator
from inference_local.run_state import RunningSignals


@dataclass(frozen=True, slots=True)
class SignalCounts:
    """Counts of a job's answers in the signal store."""

    name: str
    written: int
    """Answers with the right value."""
    missing: int
    """Answers without a value."""
    wrong: int
    """Answers with another value."""

    @property
    def is_whole(self) -> bool:
        """Whether every answer has the right value."""
        return not (self.missing or self.wrong)


#: Returns a signal's records by key. Keys without a value are left out.
Read = Callable[[str, Sequence[str]], Mapping[str, Mapping[str, Any]]]


def read_back(name: str, model: str, output: str, read: Read) -> SignalCounts:
    """Compare a job's answers with the signal store.

    model: Name of the model that gave the answers.
    output: The job's output file in JSON Lines.
    """
    answers = dict(_answer(row) for row in output.split("\n") if row)
    found = read(name, list(answers))
    wrong = [
        key
        for key, record in found.items()
        if (record["value"], record["model"]) != (answers.get(key), model)
    ]
    return SignalCounts(
        name=name,
        written=len(found) - len(wrong),
        missing=len(answers.keys() - found.keys()),
        wrong=len(wrong),
    )


def _answer(row: str) -> tuple[str, str]:
    """Return the custom_id and the answer of a row."""
    values = json.loads(row)
    return values["custom_id"], values["response"]["body"]["choices"][0]["message"]["content"]


def find_signals(emulator: Emulator, platform: str) -> RunningSignals:
    """Return the address of the deployed signal store and credentials for it.

    emulator: The emulator that the platform is deployed to.
    platform: ``metadata.name`` of a platform with a signal store.
    """
    client = emulator.client("cloudformation")
    (stack,) = client.describe_stacks(StackName=stores_stack(platform))["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    address = store_address(outputs, emulator.region, authority=str(emulator.cache_authority))
    return RunningSignals(address, emulator.environment())


# How to read the signal store of a run that keeps running.


def signals_usage_lines(signals: RunningSignals, run_directory: Path, program: str) -> tuple[str, ...]:
    """Return the address of the store, and a POSIX shell command that reads it.

    program: How this shell calls the command `blueprints`.
    """
    return (
        f"signals: Valkey at {signals.address.host}:{signals.address.port}, only for users of the cache",
        f"{program} local signals NAME KEY --run-directory {shlex.quote(str(run_directory))}",
    )
