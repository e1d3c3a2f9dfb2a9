"""The signal that a job names, which its team may write or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from batch.jobs.configuration import DeclaredSignal
from batch.jobs.fields import Fields

#: Answers of other paths are no text.
_WITH_TEXT: Final = ("/v1/chat/completions", "/v1/completions")


def read_signal(
    fields: Fields, signals: Mapping[str, DeclaredSignal], *, endpoint: str
) -> DeclaredSignal | None:
    """Return the signal of a job; None where it names none, or one that is wrong, as is noted.

    Parameters
    ----------
    fields
        What may name it, as ``signal``.
    signals
        Those that the job's team may write, by name.
    endpoint
        What every line of the job asks for.
    """
    name = fields.text("signal", default="")
    if not name:
        return None
    if name not in signals:
        allowed = f"one of {', '.join(signals)}" if signals else "left out: no signal is your team's"
        fields.wrong("signal", f"got {name[:80]}, must be {allowed}")
        return None
    if endpoint not in _WITH_TEXT:
        fields.wrong("signal", f"answers of {endpoint} are no text, only those of {' and '.join(_WITH_TEXT)}")
        return None
    return signals[name]
