"""Serving engines: their images and command-line flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Flag:
    """A command-line flag of an engine.

    Parameters
    ----------
    name
        With dashes, such as ``--max-model-len``.
    takes_value
        Whether a value follows. A flag without a value is a switch.
    negatable
        Whether ``--no-<name>`` also exists.
    owner
        The program that defines it: ``vllm`` or ``dynamo``.
    choices
        The allowed values. Empty if the program accepts any value.
    """

    name: str
    takes_value: bool
    negatable: bool
    owner: str
    choices: tuple[str, ...] = ()


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
    """An argument of an engine that changes its device memory, and that the memory estimate does not model.

    Parameters
    ----------
    name
        Without dashes, such as ``speculative-config``.
    effect
        What it does to memory, as a phrase that follows the name.
    remedy
        What to do instead.
    values
        Values that change nothing; empty if every value does.
    """

    name: str
    effect: str
    remedy: str
    values: tuple[str, ...] = field(default=())

    def changes_memory(self, value: object) -> bool:
        """Return whether the argument with this value changes the memory."""
        return value is not False and value not in self.values


@dataclass(frozen=True, slots=True)
class Engine:
    """A serving engine at the pinned release.

    Parameters
    ----------
    name
        The blueprint's key, such as ``vllm``.
    image, version, digest
        Container image repository, tag, and manifest digest (None if it is not resolved).
    engine_version
        Release of the engine inside the image.
    flags
        Flags of Dynamo's worker with this engine, by name. A negatable flag is listed once, without its
        ``--no-`` form.
    server_flags
        Flags that the engine's own server has besides those that the engine defines, by name. Empty if they
        are not recorded.
    date, source
        Date and source of the recorded flags.
    accelerators
        Accelerators for which its publisher builds the image. Empty if there is one image for all that the
        engine supports.
    image_source
        Source of the image's tag and accelerators; empty if it is that of the flags.
    owned_arguments
        Arguments without dashes that only the plan may set, each with the reason, which names the key to set
        instead if there is one.
    server_owned_arguments
        Such arguments of the engine's own server.
    """

    name: str
    image: str
    version: str
    digest: str | None
    engine_version: str
    flags: Mapping[str, Flag]
    server_flags: Mapping[str, Flag]
    date: str
    source: str
    accelerators: tuple[str, ...] = ()
    image_source: str = ""
    owned_arguments: Mapping[str, str] = field(default_factory=dict)
    server_owned_arguments: Mapping[str, str] = field(default_factory=dict)

    def flag(self, name: str) -> Flag | None:
        """Return the flag of a command-line argument, including ``--no-`` forms; None if it is unknown."""
        if name in self.flags:
            return self.flags[name]
        positive = self.flags.get("--" + name.removeprefix("--no-")) if name.startswith("--no-") else None
        return positive if positive and positive.negatable else None
