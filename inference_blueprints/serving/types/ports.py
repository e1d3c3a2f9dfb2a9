"""Ports of processes, and where the number of each is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from inference_blueprints.serving.types.constraints import Name, Positive


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port on which a process listens."""

    name: Name
    """Name of the port, unique in its process."""
    number: Annotated[int, Field(ge=1024, le=65535)]
    """Port number in the container. A local target chooses free ones instead."""


#: The ports of a program: at least one.
Ports = Annotated[tuple[Port, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class EnginePort:
    """A port of an engine, and where its number is set, for targets whose workers share an address."""

    name: Name
    """Name of the port, unique in its process."""
    number: Annotated[int, Field(ge=1024, le=65535)]
    """Number that the plan's arguments and variables have, or the engine's default."""
    argument: str | None = None
    """Argument without dashes whose value contains the number. None if a variable sets it."""
    variable: str | None = None
    """Variable that is the number. None if an argument sets it."""
    count: Positive = 1
    """Ports in a row that the engine opens from there on."""
