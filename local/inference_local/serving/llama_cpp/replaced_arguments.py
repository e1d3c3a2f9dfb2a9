"""The arguments of a planned llama-server that have another value on this machine: the one list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from inference_blueprints.serving.command_line import arguments_by_name
from inference_local.serving.process_commands import OWN_ADDRESS

#: Sequences that a server computes at once here. Their cache is a part of this machine's memory.
MAX_SEQUENCES = 4

_NAMED_FILE = "the file that you named; nothing is downloaded"
_RANDOM_WEIGHTS = "a small model with random weights; nothing is downloaded"
_PROCESSORS = "the servers share the processors of this machine"
_SEQUENCES = "the servers share the memory of this machine"

#: The words after an argument. None leaves it out.
Words = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a server runs on this machine."""

    model_file: Path
    """The small model."""
    address: str
    """Its loopback address."""
    threads: int
    """Threads that it may use."""
    is_named: bool = False
    """Whether the user named the file. Otherwise, it is a small model with random weights."""


@dataclass(frozen=True, slots=True)
class PlannedCache:
    """The sequences that a planned server computes at once, and the tokens of all their caches."""

    sequences: int
    tokens: int

    @property
    def sequences_here(self) -> int:
        """The sequences that the server computes at once on this machine."""
        return min(self.sequences, MAX_SEQUENCES)

    @property
    def tokens_here(self) -> int:
        """The tokens of all their caches. Each sequence has as many as planned."""
        return self.tokens // self.sequences * self.sequences_here


@dataclass(frozen=True, slots=True)
class ReplacedArgument:
    """An argument whose value differs from the plan: the words of both, and the reason."""

    name: str
    planned: Words
    here: Words
    reason: str


#: By argument without dashes: its value here, and the reason.
_RULES: Mapping[str, tuple[Callable[[ServerPlace, PlannedCache], Words], str]] = MappingProxyType(
    {
        "model": (lambda place, _: (str(place.model_file),), _RANDOM_WEIGHTS),
        "model-url": (lambda _, __: None, _RANDOM_WEIGHTS),
        "host": (lambda place, _: (place.address,), OWN_ADDRESS),
        "threads": (lambda place, _: (str(place.threads),), _PROCESSORS),
        "threads-batch": (lambda place, _: (str(place.threads),), _PROCESSORS),
        "numa": (lambda _, __: None, _PROCESSORS),
        "parallel": (lambda _, cache: (str(cache.sequences_here),), _SEQUENCES),
        "ctx-size": (lambda _, cache: (str(cache.tokens_here),), _SEQUENCES),
    }
)


def planned_cache(planned: Sequence[str]) -> PlannedCache:
    """Return the sequences and the tokens of a planned server.

    planned: Its arguments in the plan.
    """
    values = dict(arguments_by_name(planned))
    return PlannedCache(int(values["parallel"][0]), int(values["ctx-size"][0]))


def arguments_here(
    planned: Sequence[str], place: ServerPlace
) -> tuple[tuple[str, ...], tuple[ReplacedArgument, ...]]:
    """Return the arguments of a planned server on this machine, and those that differ from the plan.

    place: Where it runs.
    """
    cache, words, replaced = planned_cache(planned), list[str](), list[ReplacedArgument]()
    for name, values in arguments_by_name(planned):
        here: Words = values
        if name in _RULES:
            rule, reason = _RULES[name]
            here = rule(place, cache)
            if place.is_named and reason == _RANDOM_WEIGHTS:
                reason = _NAMED_FILE
            if here != values:
                replaced.append(ReplacedArgument(name, values, here, reason))
        if here is not None:
            words += [f"--{name}", *here]
    return tuple(words), tuple(replaced)
