"""Command-line arguments: flags and values by name, to the words that a program is given."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.spec.types import ArgumentValue

Argument = ArgumentValue | tuple[str, ...]
"""What follows a flag: one value, none with a switch, or several words."""


def words(arguments: Mapping[str, Argument]) -> tuple[str, ...]:
    """Return the command line of named arguments, each flag and each value a word of its own.

    A boolean is ``--name`` or ``--no-name``: Python's ``BooleanOptionalAction`` accepts no value.

    Parameters
    ----------
    arguments
        Value by name without dashes, in the order of the command line.
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
