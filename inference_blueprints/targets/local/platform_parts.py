"""What each part of a local run is: real, a stand-in, emulated, simulated or stubbed."""

from dataclasses import dataclass
from typing import Literal

State = Literal["real", "stand-in", "emulated", "simulated", "stubbed"]


@dataclass(frozen=True, slots=True)
class PlatformPart:
    """One line of the table that says how real a local run is.

    Parameters
    ----------
    name
        The part, such as ``KV-aware router``.
    state
        ``real`` is the software that runs on AWS; ``stand-in`` is other real software in its place;
        ``emulated`` answers the same API; ``simulated`` models
        timing from measurements; ``stubbed`` is accepted and does nothing.
    detail
        What exactly, in one sentence.
    """

    name: str
    state: State
    detail: str
