"""The document in the variable ``TASK_START``.

=========== ===================================================================== ==========
Key         Meaning                                                               Default
=========== ===================================================================== ==========
network     network mode of the task: ``host`` or ``awsvpc``                      required
ports       names of ports, and the position of each in the block, 0 to 31        none
address     variables that get the task's address                                 none
files       files to write: path and text, which may contain placeholders         none
tag         tags of the task: key, and the port that follows the address: its     none
            name or a number
efa         ``{"interfaces": n}``: how many EFA interfaces the engine uses        all
locks       ``{"folder": path, "entries": [...]}``: entries of the host's copies  none
            that the engine uses
neuron      Neuron devices that the engine uses: ``{"folder": path of their locks,    none
            "devices": n, "of": those of the host, "cores": per device,
            "variable": name}``
=========== ===================================================================== ==========
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Ports of one block.
PORTS_PER_BLOCK = 32
_NETWORKS = ("host", "awsvpc")


class TaskStartError(Exception):
    """The task cannot start as it is described, with the reason."""


@dataclass(frozen=True)
class NeuronShare:
    """What the key ``neuron`` says."""

    folder: Path
    devices: int
    of: int
    cores: int
    variable: str


@dataclass(frozen=True)
class StartDocument:
    """What to prepare for the engine. The module's docstring describes each attribute."""

    network: str
    ports: Mapping[str, int]
    address: tuple[str, ...]
    files: Mapping[str, str]
    tag: Mapping[str, str | int]
    interfaces: int | None
    folder: Path | None
    entries: tuple[str, ...]
    neuron: NeuronShare | None


def read_document(text: str) -> StartDocument:
    """Read the document.

    Raises TaskStartError if it is not JSON, or has unknown keys or values of another kind; all errors in one
    message.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise TaskStartError(f"TASK_START is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise TaskStartError(f"TASK_START must be an object, got {text[:80]!r}")
    errors = [f"{key}: unknown; known are {', '.join(_CHECKS)}" for key in values.keys() - _CHECKS.keys()]
    errors += [
        f"{key}: got {values[key]!r}, must be {wanted}"
        for key, (is_right, wanted) in _CHECKS.items()
        if key in values and not is_right(values[key])
    ]
    if "network" not in values:
        errors.append("network: missing")
    if not errors:
        known = values.get("ports", {})
        missing = [
            port for port in values.get("tag", {}).values() if isinstance(port, str) and port not in known
        ]
        errors += [f"tag: {port!r} is not one of the ports" for port in missing]
    if errors:
        raise TaskStartError("TASK_START: " + "; ".join(sorted(errors)))
    locks, neuron = values.get("locks"), values.get("neuron")
    return StartDocument(
        network=values["network"],
        ports=values.get("ports", {}),
        address=tuple(values.get("address", ())),
        files=values.get("files", {}),
        tag=values.get("tag", {}),
        interfaces=values["efa"]["interfaces"] if "efa" in values else None,
        folder=Path(locks["folder"]) if locks else None,
        entries=tuple(locks["entries"]) if locks else (),
        neuron=NeuronShare(**{**neuron, "folder": Path(neuron["folder"])}) if neuron else None,
    )


def _is_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _are_ports(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(_is_number(place, 0, PORTS_PER_BLOCK - 1) for place in value.values())
        and len(set(value.values())) == len(value)
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _are_files(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _are_tags(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(port, str) or _is_number(port, 1, 65_535) for port in value.values()
    )


def _are_interfaces(value: Any) -> bool:
    return (
        isinstance(value, dict) and value.keys() == {"interfaces"} and _is_number(value["interfaces"], 1, 64)
    )


def _are_locks(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"folder", "entries"}
        and isinstance(value["folder"], str)
        and _are_texts(value["entries"])
    )


def _is_share(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"folder", "devices", "of", "cores", "variable"}
        and isinstance(value["folder"], str)
        and isinstance(value["variable"], str)
        and _is_number(value["of"], 1, 64)
        and _is_number(value["devices"], 1, value["of"])
        and _is_number(value["cores"], 1, 64)
    )


#: Key: whether a value is right, and what is right in words.
_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "network": (lambda value: value in _NETWORKS, "one of host, awsvpc"),
    "ports": (_are_ports, f"names with different positions from 0 to {PORTS_PER_BLOCK - 1}"),
    "address": (_are_texts, "a list of variables"),
    "files": (_are_files, "paths with texts"),
    "tag": (_are_tags, "keys with the name or the number of a port"),
    "efa": (_are_interfaces, "{interfaces: 1 to 64}"),
    "locks": (_are_locks, "{folder: a path, entries: a list of names}"),
    "neuron": (
        _is_share,
        "{folder: a path, devices: 1 to 'of', of: 1 to 64, cores: 1 to 64, variable: a name}",
    ),
}
