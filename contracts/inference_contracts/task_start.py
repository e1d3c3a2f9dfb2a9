"""The document that a task of Amazon ECS reads before it becomes an engine: the variable ``TASK_START``.

``runtime/task_start`` reads it with the standard library alone, so it has the same keys in
``start_document.py``. ``tests/unit/render/ecs/task_start.json`` is an example that both must read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

TaskNetwork = Literal["host", "awsvpc"]
#: Ports that a task in the network of its host has for itself: positions of ``ports`` are below it.
PORTS_OF_TASK: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronPart:
    """The part of its host's Neuron devices that a task takes when it starts."""

    folder: str
    """Folder in which all tasks of the host lock their devices."""
    devices: int
    """Devices of the task."""
    of: int
    """Devices of the host."""
    cores: int
    """Logical cores of a device."""
    variable: str
    """Variable that gets the numbers of the task's cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStart:
    """What a task prepares for its engine."""

    network: TaskNetwork
    """Network mode of the task."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Position of each port in the task's block of ports, from 0. A port that is one of several in a row
    takes the following positions too."""
    address: tuple[str, ...] = ()
    """Variables that get the address of the task."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write: path and text. It may have the same placeholders as the command: ``$(port:NAME)`` and
    ``$(address)``."""
    tag: Mapping[str, str | int] = field(default_factory=dict)
    """Tags that the task gets: key, and the port that follows its address, by name or number."""
    efa_interfaces: int = 0
    """EFA interfaces that the engine uses. 0 without EFA."""
    lock_folder: str | None = None
    """Folder of the host whose entries the engine uses. None if it uses none."""
    lock_entries: tuple[str, ...] = ()
    """The entries that no other task may delete meanwhile."""
    neuron: NeuronPart | None = None
    """The Neuron devices that the engine uses. None without any."""

    def as_text(self) -> str:
        """Return the value of the variable. Keys that the task does not need are left out."""
        values: dict[str, Any] = {
            "network": self.network,
            "ports": dict(self.ports),
            "address": list(self.address),
            "files": dict(self.files),
            "tag": dict(self.tag),
            "efa": {"interfaces": self.efa_interfaces} if self.efa_interfaces else None,
            "locks": {"folder": self.lock_folder, "entries": list(self.lock_entries)}
            if self.lock_folder
            else None,
            "neuron": asdict(self.neuron) if self.neuron else None,
        }
        return json.dumps({name: value for name, value in values.items() if value}, separators=(",", ":"))


def port_reference(name: str) -> str:
    """Return the placeholder of a port's number in a command, a variable or a file."""
    return f"$(port:{name})"
