"""The state of each part of a local run: real, stand-in, emulated, simulated or stubbed."""

from dataclasses import dataclass
from typing import Literal

State = Literal["real", "stand-in", "emulated", "simulated", "stubbed"]


@dataclass(frozen=True, slots=True)
class PlatformPart:
    """One row of the table of parts.

    Parameters
    ----------
    name
        The part, such as ``KV-aware router``.
    state
        ``real`` is the software that runs on AWS. ``stand-in`` is other real software in its place.
        ``emulated`` offers the same API. ``simulated`` computes its timing from measurements. ``stubbed`` is
        accepted and does nothing.
    detail
        One sentence of detail.
    """

    name: str
    state: State
    detail: str
