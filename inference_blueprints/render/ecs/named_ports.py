"""Numbers of ports in a command and its variables, as names: tasks of a host share its ports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from inference_blueprints.serving.types import EnginePort
from inference_contracts.task_start import PORTS_OF_TASK, port_reference


def port_positions(ports: Sequence[EnginePort]) -> dict[str, int]:
    """Return the position of each port in the block of a task. Ports in a row have positions in a row.

    Raises ValueError if they do not fit into a block.
    """
    positions: dict[str, int] = {}
    free = 0
    for port in ports:
        positions[port.name] = free
        free += port.count
    if free > PORTS_OF_TASK:
        raise ValueError(f"the worker needs {free} ports, a task has {PORTS_OF_TASK}")
    return positions


def named_arguments(arguments: Sequence[str], ports: Sequence[EnginePort]) -> tuple[str, ...]:
    """Return the arguments with a name in place of each number.

    Raises ValueError if an argument does not have the number that it should: two workers would take the same
    port.
    """
    words = list(arguments)
    for port in ports:
        if port.argument is None:
            continue
        places = [index + 1 for index, word in enumerate(words[:-1]) if word == f"--{port.argument}"]
        number = re.compile(rf"(?<!\d){port.number}(?!\d)")
        if len(places) != 1 or len(number.findall(words[places[0]])) != 1:
            raise ValueError(f"--{port.argument} does not have the port {port.number} exactly once")
        words[places[0]] = number.sub(port_reference(port.name), words[places[0]])
    return tuple(words)


def named_variables(ports: Sequence[EnginePort]) -> Mapping[str, str]:
    """Return the variables that are the number of a port."""
    return {port.variable: port_reference(port.name) for port in ports if port.variable}
