"""Checks the signal that a job names: its team must be allowed to write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from batch.jobs.fields import Fields
from inference_contracts.batch_configuration import DeclaredSignal

#: Answers of other API paths are not text.
_WITH_TEXT: Final = ("/v1/chat/completions", "/v1/completions")


def read_signal(
    fields: Fields, signals: Mapping[str, DeclaredSignal], *, endpoint: str
) -> DeclaredSignal | None:
    """Return the signal of a job; None if it names none, or an invalid one, which is noted.

    fields: Fields of the submission. The field ``signal`` names the signal.
    signals: Signals that the job's team may write, by name.
    endpoint: API path of every line of the job.
    """
    name = fields.text("signal", default="")
    if not name:
        return None
    if name not in signals:
        allowed = f"one of {', '.join(signals)}" if signals else "left out: your team has no signal"
        fields.wrong("signal", f"got {name[:80]}, must be {allowed}")
        return None
    if endpoint not in _WITH_TEXT:
        fields.wrong(
            "signal",
            f"answers of {endpoint} are not text; a signal takes answers of {' and '.join(_WITH_TEXT)}",
        )
        return None
    return signals[name]
