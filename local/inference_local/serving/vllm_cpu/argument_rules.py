"""How an argument of a planned vLLM worker differs on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: What the table of exceptions says of a setting that is not used here.
LEFT_OUT = "left out"

#: The words after an argument.
Values = tuple[str, ...]
# Each worker has so many ports, one per data parallel rank.
_PORTS = 10


@dataclass(frozen=True, slots=True)
class RuledWorker:
    """A worker's address and model, its planned arguments, and whether its attention is latent."""

    address: str
    model_directory: Path
    planned: Mapping[str, Values]
    latent_attention: bool

    @property
    def draft_directory(self) -> Path:
        """Folder of the small draft."""
        return draft_directory(self.model_directory)

    @property
    def kv_cache_directory(self) -> Path:
        """Folder of this worker for KV cache on disk."""
        return self.model_directory.with_name("kv-cache") / self.address

    def own_port(self, planned: int) -> str:
        """Return a port that no other worker of this machine has, instead of one that all would share."""
        number = self.address.rpartition(".")[2]
        if not number.isdigit():  # the description of all workers has an x
            return f"{planned}+{_PORTS}{number}"
        return str(planned + _PORTS * int(number))


@dataclass(frozen=True, slots=True)
class Rule:
    """How one argument differs on this machine."""

    here: Callable[[Values, RuledWorker], Values | None]
    """Returns the values on this machine from the planned ones; None if the argument is left out."""
    reason: str
    """Why it differs."""
    shown: str = LEFT_OUT
    """The value on this machine in words."""
    reason_of: Callable[[Values, RuledWorker], str] | None = None
    """Returns the reason from the planned values and the worker, if it depends on them."""

    def why(self, values: Values, worker: RuledWorker) -> str:
        """Return why it differs for a worker."""
        return self.reason_of(values, worker) if self.reason_of else self.reason


def draft_directory(model_directory: Path) -> Path:
    """Return the folder of the small draft beside that of a small model."""
    return model_directory.with_name("draft")
