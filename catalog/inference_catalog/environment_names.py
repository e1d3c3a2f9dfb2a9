"""Environment variables that an engine defines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentNames:
    """The variables that an engine's release reads."""

    name: str
    """The blueprint's key of the engine, such as ``vllm``."""
    prefix: str
    """Beginning of all names, such as ``VLLM_``."""
    release: str
    """Release of the engine that defines them."""
    names: tuple[str, ...]
    """The names."""
    date: str
    """Date of the recording."""
    source: str
    """The module that was read."""
