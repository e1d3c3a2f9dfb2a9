"""The state of each part of a local run: real, stand-in, emulated, simulated or stubbed."""

from dataclasses import dataclass
from typing import Literal

State = Literal["real", "stand-in", "emulated", "simulated", "stubbed"]


@dataclass(frozen=True, slots=True)
class PlatformPart:
    """One row of the table of parts."""

    name: str
    """The part, such as ``KV-aware router``."""
    state: State
    """``real`` is the software that runs on AWS. ``stand-in`` is other real software in its place.
    ``emulated`` offers the same API. ``simulated`` computes its timing from measurements. ``stubbed`` is
    accepted and does nothing."""
    detail: str
    """One sentence of detail."""


@dataclass(frozen=True, slots=True, order=True)
class Replacement:
    """One row of the table of exceptions: a setting of the plan that has another value on this machine."""

    workers: str
    """The deployment and role whose workers have the setting."""
    setting: str
    """An argument or variable of the engine, or a key of the plan."""
    planned: str
    here: str
    """`planned`, `here`: Value in the plan, or ``not set``, and on this machine, or ``left out``."""
    reason: str
    """Why this machine cannot take the planned value."""
