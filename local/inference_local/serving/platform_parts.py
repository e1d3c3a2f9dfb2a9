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


@dataclass(frozen=True, slots=True, order=True)
class Replacement:
    """One row of the table of exceptions: a setting of the plan that has another value on this machine.

    Parameters
    ----------
    workers
        The deployment and role whose workers have the setting.
    setting
        An argument or variable of the engine, or a key of the plan.
    planned, here
        Value in the plan, or ``not set``, and on this machine, or ``left out``.
    reason
        Why this machine cannot take the planned value.
    """

    workers: str
    setting: str
    planned: str
    here: str
    reason: str
