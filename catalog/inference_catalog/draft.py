"""What a draft of speculative decoding (EAGLE) adds to the entry of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DraftMethod = Literal["eagle", "eagle3"]


@dataclass(frozen=True, slots=True)
class DraftClass:
    """A model class of drafts."""

    name: str
    """The class in ``architectures`` of the ``config.json``."""
    method: DraftMethod
    """``eagle``: guesses from the last hidden state of the model; ``eagle3``: from those of several
    layers."""
    engines: tuple[str, ...]
    """Engines that load the class, by the blueprint's key."""
    source: str
    """Source of these facts."""


@dataclass(frozen=True, slots=True)
class Draft:
    """How a draft depends on the model for which it guesses."""

    method: DraftMethod
    """``eagle`` or ``eagle3``, as in ``DraftClass``."""
    engines: tuple[str, ...]
    """Engines that load its class."""
    target_hidden_size: int
    """Hidden size of the model for which it was trained."""
    input_size: int
    """Values per token that its first projection reads. Each device holds this projection whole."""
