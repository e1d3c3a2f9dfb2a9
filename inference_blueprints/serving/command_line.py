"""Converts arguments, by name, to a command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from inference_blueprints.spec.types import ArgumentValue

Argument = ArgumentValue | tuple[str, ...]
"""The value of a flag, a boolean for a switch, or several values."""


def command_line(arguments: Mapping[str, Argument]) -> tuple[str, ...]:
    """Return the command line of named arguments. Each flag and each value is a separate string.

    A boolean is ``--name`` or ``--no-name``: Python's ``BooleanOptionalAction`` accepts no value.

    arguments: Value by name without dashes, in the order of the command line.
    """
    line: list[str] = []
    for name, value in arguments.items():
        if isinstance(value, bool):
            line.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, tuple):
            line += [f"--{name}", *value]
        else:
            line += [f"--{name}", str(value)]
    return tuple(line)


def flag_values(line: Sequence[str]) -> dict[str, str]:
    """Return the values of a command line by flag, without dashes; the last value if a flag is repeated.

    Switches and positional arguments are left out. Of a flag with several values, only the first is returned.
    """
    return {
        name.removeprefix("--"): value
        for name, value in pairwise(line)
        if name.startswith("--") and not value.startswith("--")
    }


#: Arguments with the names of a model in requests.
_MODEL_NAMES = ("served-model-name", "alias")


def model_names(line: Sequence[str]) -> tuple[str, ...]:
    """Return the names in requests of the model that a command line serves, its own first."""
    stated = dict(arguments_by_name(line))
    values = (value for flag in _MODEL_NAMES for value in stated.get(flag, ()))
    return tuple(name for value in values for name in value.split(","))


def arguments_by_name(line: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the values of each argument of a command line. Words before the first argument have no name.

    line: The words of the command line.
    """
    name, values = "", list[str]()
    for word in line:
        if word.startswith("--"):
            if name or values:
                yield name, tuple(values)
            name, values = word.removeprefix("--"), []
        else:
            values.append(word)
    if name or values:
        yield name, tuple(values)
