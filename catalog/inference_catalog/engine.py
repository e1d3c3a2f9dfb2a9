"""Serving engines: images, flags, environment variables, answer formats, limits of requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from inference_contracts.records import dataclass
from inference_contracts.request_limits import Bound, RequestLimits, StructureLimits

# How models mark reasoning and tool calls in their answers, and the parsers that read them.


Thinking = Literal["switch", "always", "never", "effort"]


@dataclass(frozen=True, slots=True)
class ParserNames:
    """The parsers of one program for a format."""

    reasoning: str | None = None
    """Parser that separates reasoning from the answer. None if the models do not think, or the program has no
    parser."""
    tool_call: str | None = None
    """Parser that turns text into tool calls. None if the program has no parser, or needs a chat template
    that the models do not bring."""


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format of a family's answers."""

    name: str
    """The catalogue's name, such as ``harmony``."""
    parsers: Mapping[str, ParserNames]
    """Parsers by the program that defines them: ``dynamo``, ``vllm`` or ``sglang``."""
    thinking: Thinking
    """Whether models of the family think before they answer: as a switch of their template says, always,
    never, or as much as the effort that a request gives."""
    vocabulary_host: str | None
    """Host from which Dynamo's frontend downloads a vocabulary for its parsers, at the first request. Without
    it, answers lose their reasoning and tool calls, and no error says so. None if they need none."""
    source: str
    """Documents that name the parsers."""


# The limits of requests that each engine needs, with what happens beyond them.


@dataclasses.dataclass(frozen=True, slots=True)  # as its base, which programs in the cloud read
class EngineBound(Bound):
    """The most that a field of a request may have, and why."""

    engines: tuple[str, ...]
    """Engines that need it, by the blueprint's key. All if it is empty."""
    beyond: str
    """What an engine does beyond it."""
    source: str
    """Where the engine's source, or an API, says so."""

    def needed_by(self, engine: str) -> bool:
        """Return whether the requests of an engine have this bound."""
        return not self.engines or engine in self.engines


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of requests of all engines."""

    source: str
    date: str
    """`source`, `date`: Where the limits were read, and when."""
    read: Mapping[str, str]
    """Release of each engine whose sources were read, by the blueprint's key."""
    bounds: tuple[EngineBound, ...]
    """Bounds of fields."""
    structure: StructureLimits
    """Limits of schemas, patterns and grammars, which are the same for every engine."""
    structure_source: str
    """Where these were measured."""

    def of(self, engine: str) -> RequestLimits:
        """Return the limits of an engine's requests.

        Parameters
        ----------
        engine
            The blueprint's key of the engine, such as ``vllm``.
        """
        bounds = (Bound(each.field, each.counts, each.most) for each in self.bounds if each.needed_by(engine))
        return RequestLimits(tuple(bounds), self.structure)


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
    values: tuple[str, ...] = dataclasses.field(default=())
    """Values that change nothing; empty if every value does."""

    def changes_memory(self, value: object) -> bool:
        """Return whether the argument with this value changes the memory."""
        return value is not False and value not in self.values


@dataclass(frozen=True, slots=True)
class Engine:
    """A release of a serving engine."""

    name: str
    """The blueprint's key, such as ``vllm``."""
    image: str
    version: str
    digest: str | None
    """`image`, `version`, `digest`: Container image repository, release by which a blueprint names it, and
    manifest digest (None if it is not resolved)."""
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
    owned_arguments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Arguments without dashes that only the plan may set, each with the reason, which names the key to set
    instead if there is one."""
    server_owned_arguments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Such arguments of the engine's own server."""
    ignored_arguments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Arguments that Dynamo's workers take and only the engine's own server reads, each with the reason."""
    tag: str = ""
    """Tag of the image; empty if it is the version."""
    wheel: str = ""
    """Digest of the wheel from which the flags were read; empty if they were not read from one alone."""
    model_classes: tuple[str, ...] = ()
    """Model classes that the release registers; empty if they are not recorded with it."""
    environment_names: tuple[str, ...] = ()
    """Environment variables that the release defines; empty if they are not recorded with it."""

    @property
    def address(self) -> str:
        """The image by tag, and by digest if one is known."""
        tagged = f"{self.image}:{self.tag or self.version}"
        return f"{tagged}@{self.digest}" if self.digest else tagged

    @property
    def on_dynamo(self) -> bool:
        """Whether Dynamo's workers are in the image, so that the flags are theirs."""
        return any(flag.owner == "dynamo" for flag in self.flags.values())

    def flag(self, name: str) -> Flag | None:
        """Return the flag of a command-line argument, including ``--no-`` forms; None if it is unknown."""
        if name in self.flags:
            return self.flags[name]
        positive = self.flags.get("--" + name.removeprefix("--no-")) if name.startswith("--no-") else None
        return positive if positive and positive.negatable else None
