"""How an argument of a planned vLLM worker differs on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: What the table of exceptions says of a setting that is not used here.
LEFT_OUT = "left out"

#: The words after an argument.
Values = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuledWorker:
    """A worker's address and draft, its planned arguments, and whether its attention is latent."""

    address: str
    draft_directory: Path
    planned: Mapping[str, Values]
    latent_attention: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """How one argument differs on this machine.

    Parameters
    ----------
    here
        Returns the values on this machine from the planned ones; None if the argument is left out.
    reason
        Why it differs.
    shown
        The value on this machine in words.
    reason_of
        Returns the reason from the planned values and the worker, if it depends on them.
    """

    here: Callable[[Values, RuledWorker], Values | None]
    reason: str
    shown: str = LEFT_OUT
    reason_of: Callable[[Values, RuledWorker], str] | None = None

    def why(self, values: Values, worker: RuledWorker) -> str:
        """Return why it differs for a worker."""
        return self.reason_of(values, worker) if self.reason_of else self.reason
