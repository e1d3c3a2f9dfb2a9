"""Prepares the task and becomes the engine. Exit code 2 means that the task is described wrongly.

The engine inherits every variable except those of this program.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from task_start.live_check import PORTS_FILE
from task_start.nearest_interfaces import nearest_interfaces
from task_start.neuron_cores import take_cores
from task_start.own_tags import tag_task
from task_start.placeholders import filled
from task_start.port_block import take_block
from task_start.start_document import StartDocument, TaskStartError, read_document
from task_start.task_metadata import task_address, task_arn
from task_start.weights_locks import hold_entries

_OWN_VARIABLES = ("TASK_START", "TASK_PROGRAM")
_WRONG = 2


def prepare(
    document: StartDocument, command: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Take what the engine needs, and return its command and its environment.

    Raises TaskStartError if something that the engine needs is missing on the host.
    """
    address = task_address(document.network, environment)
    if document.folder:
        hold_entries(document.folder, document.entries)
    ports = take_block(address, document.ports) if document.ports else {}
    variables = {name: value for name, value in environment.items() if name not in _OWN_VARIABLES}
    variables = {name: filled(value, address, ports) for name, value in variables.items()}
    variables |= dict.fromkeys(document.address, address)
    words = [filled(word, address, ports) for word in command]
    if document.interfaces:
        chosen = nearest_interfaces(document.interfaces, environment.get("NVIDIA_VISIBLE_DEVICES"))
        variables["FI_EFA_IFACE"] = ",".join(chosen)
    known = {str(Path(tempfile.gettempdir()) / PORTS_FILE): json.dumps({"address": address, "ports": ports})}
    if document.neuron:
        variables[document.neuron.variable] = take_cores(document.neuron)
        print(f"NeuronCores {variables[document.neuron.variable]}", flush=True)
    for path, text in {**document.files, **known}.items():
        _write(Path(path), filled(text, address, ports))
    print(f"address {address}, ports {ports or 'of the engine'}", flush=True)
    _tag(document, address, ports, environment)
    return words, variables


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TaskStartError(f"{path} cannot be written: {error.strerror}") from error


def _tag(
    document: StartDocument, address: str, ports: Mapping[str, int], environment: Mapping[str, str]
) -> None:
    """Tag the task. A task whose metrics nobody finds still serves; an alarm counts those."""
    if not document.tag:
        return
    tags = {
        key: f"{address}:{ports[port] if isinstance(port, str) else port}"
        for key, port in document.tag.items()
    }
    try:
        tag_task(task_arn(environment), tags, environment)
    except TaskStartError as error:
        print(f"warning: {error}; its metrics are not recorded", file=sys.stderr, flush=True)


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Become the engine, or return an exit code.

    arguments: ``--`` and the engine's command.
    """
    # A process with ID 1, as in a container, has no default for SIGTERM. The engine sets its own (execve(2)).
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    try:
        words, variables = prepare(_document(environment), _command(arguments), environment)
        _become(words, variables)
    except TaskStartError as error:
        print(f"error: {error}", file=sys.stderr)
    return _WRONG


def _document(environment: Mapping[str, str]) -> StartDocument:
    if "TASK_START" not in environment:
        raise TaskStartError("TASK_START is not set")
    return read_document(environment["TASK_START"])


def _command(arguments: Sequence[str]) -> Sequence[str]:
    separator, *words = arguments or [""]
    if separator != "--" or not words:
        raise TaskStartError("usage: python3 -m task_start -- COMMAND")
    return words


def _become(words: list[str], variables: Mapping[str, str]) -> None:
    sys.stdout.flush()
    try:
        os.execvpe(words[0], words, variables)  # noqa: S606 - the engine's command, without a shell
    except OSError as error:
        raise TaskStartError(f"{words[0]}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
