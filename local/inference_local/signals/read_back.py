"""Reads a job's answers back from the signal store and compares them with its output file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
