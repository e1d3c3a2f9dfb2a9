"""Serving engines: which image holds them and which flags they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flag:
    """One command-line flag of an engine.

    Parameters
    ----------
    name
        With its dashes, such as ``--max-model-len``.
    takes_value
        Whether a value follows; a flag that takes none is a switch.
    negatable
        Whether ``--no-<name>`` exists too.
    owner
        The program that defines it: ``vllm`` or ``dynamo``.
    """

    name: str
    takes_value: bool
    negatable: bool
    owner: str


@dataclass(frozen=True, slots=True)
class Engine:
    """One serving engine at the pinned release.

    Parameters
    ----------
    name
        The blueprint's word for it, such as ``vllm``.
    image, version, digest
        Container image repository, tag, and manifest digest (None where it has not been resolved).
    engine_version
        Release of the engine inside the image.
    flags
        Flag by name. A negatable flag is listed once, without ``--no-``.
    date, source
        When and from where the flags were recorded.
    """

    name: str
    image: str
    version: str
    digest: str | None
    engine_version: str
    flags: Mapping[str, Flag]
    date: str
    source: str

    def flag(self, name: str) -> Flag | None:
        """Return the flag that a command line's word means, ``--no-`` forms included; None when unknown."""
        if name in self.flags:
            return self.flags[name]
        positive = self.flags.get("--" + name.removeprefix("--no-")) if name.startswith("--no-") else None
        return positive if positive and positive.negatable else None
