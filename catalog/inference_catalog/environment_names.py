"""Environment variables that an engine defines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentNames:
    """The variables that an engine's release reads.

    Parameters
    ----------
    name
        The blueprint's key of the engine, such as ``vllm``.
    prefix
        Beginning of all names, such as ``VLLM_``.
    release
        Release of the engine that defines them.
    names
        The names.
    date, source
        Date of the recording, and the module that was read.
    """

    name: str
    prefix: str
    release: str
    names: tuple[str, ...]
    date: str
    source: str
