"""Serving engines: their images and command-line flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Flag:
    """A command-line flag of an engine."""

    name: str
    """With dashes, such as ``--max-model-len``."""
    takes_value: bool
    """Whether a value follows. A flag without a value is a switch."""
    negatable: bool
    """Whether ``--no-<name>`` also exists."""
    owner: str
    """The program that defines it: ``vllm`` or ``dynamo``."""
    choices: tuple[str, ...] = ()
    """The allowed values. Empty if the program accepts any value."""


def flags_of(entries: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Flag]:
    """Return the flags of a table of a data file, by name."""
    return MappingProxyType(
        {
            name: Flag(name, **{**entry, "choices": tuple(entry.get("choices", ()))})
            for name, entry in entries.items()
        }
    )


@dataclass(frozen=True, slots=True)
class MemoryArgument:
    """An engine's argument that changes its device memory, and that the memory estimate does not model."""

    name: str
    """Without dashes, such as ``speculative-config``."""
    effect: str
    """What it does to memory, as a phrase that follows the name."""
    remedy: str
    """What to do instead."""
    values: tuple[str, ...] = field(default=())
    """Values that change nothing; empty if every value does."""

    def changes_memory(self, value: object) -> bool:
        """Return whether the argument with this value changes the memory."""
        return value is not False and value not in self.values


@dataclass(frozen=True, slots=True)
class Engine:
    """A serving engine at the pinned release."""

    name: str
    """The blueprint's key, such as ``vllm``."""
    image: str
    version: str
    digest: str | None
    """`image`, `version`, `digest`: Container image repository, tag, and manifest digest (None if it is not
    resolved)."""
    engine_version: str
    """Release of the engine inside the image."""
    flags: Mapping[str, Flag]
    """Flags of Dynamo's worker with this engine, by name. A negatable flag is listed once, without its
    ``--no-`` form."""
    server_flags: Mapping[str, Flag]
    """Flags that the engine's own server has besides those that the engine defines, by name. Empty if they
    are not recorded."""
    date: str
    source: str
    """`date`, `source`: Date and source of the recorded flags."""
    accelerators: tuple[str, ...] = ()
    """Accelerators for which its publisher builds the image. Empty if there is one image for all that the
    engine supports."""
    image_source: str = ""
    """Source of the image's tag and accelerators; empty if it is that of the flags."""
    owned_arguments: Mapping[str, str] = field(default_factory=dict)
    """Arguments without dashes that only the plan may set, each with the reason, which names the key to set
    instead if there is one."""
    server_owned_arguments: Mapping[str, str] = field(default_factory=dict)
    """Such arguments of the engine's own server."""

    def flag(self, name: str) -> Flag | None:
        """Return the flag of a command-line argument, including ``--no-`` forms; None if it is unknown."""
        if name in self.flags:
            return self.flags[name]
        positive = self.flags.get("--" + name.removeprefix("--no-")) if name.startswith("--no-") else None
        return positive if positive and positive.negatable else None
