"""Reads back what a job left in the signal store, and holds it against the job's own answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SignalCounts:
    """What became of a job's answers in the signal store.

    Parameters
    ----------
    written
        Answers that are there, word for word.
    missing
        Answers that are not there.
    wrong
        Answers in whose place something else is.
    """

    name: str
    written: int
    missing: int
    wrong: int

    @property
    def is_whole(self) -> bool:
        """Whether every answer is there."""
        return not (self.missing or self.wrong)


#: Returns the records of keys of a signal, by key; one without a value is left out.
Read = Callable[[str, Sequence[str]], Mapping[str, Mapping[str, Any]]]


def read_back(name: str, model: str, output: str, read: Read) -> SignalCounts:
    """Count what became of answers in the signal store.

    Parameters
    ----------
    model
        What gave the answers.
    output
        The job's output file, JSON Lines.
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
    """Return a row's custom_id and what the model said."""
    values = json.loads(row)
    return values["custom_id"], values["response"]["body"]["choices"][0]["message"]["content"]
