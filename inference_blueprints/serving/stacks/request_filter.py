"""The filter in front of an entry point: a program of ours in its container, which starts it.

It is in every way to the model, also that of batch, and of pods and tasks that do not ask the load balancer:
the program of the entry point listens at the loopback address only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import inference_catalog as catalog
from inference_blueprints.serving.packed_program import LOADER, packed_program
from inference_blueprints.serving.types import FilePath, Process
from inference_contracts.request_filter import (
    BEHIND_OPTION,
    PROGRAM_VARIABLE,
    SETTINGS_VARIABLE,
    FilterSettings,
    WorkerDiscovery,
)

_MODULE: Final = "request_filter"
_LOADER: Final = LOADER.format(text=f'open(os.environ["{PROGRAM_VARIABLE}"]).read()')
_COMMAND: Final = ("python3", "-c", _LOADER, _MODULE)
#: A worker that ends sooner after it has left discovery has died.
_DRAIN_SECONDS: Final = 10.0


def add_filter(
    process: Process,
    engine: str,
    *,
    host_option: str,
    port_option: str,
    discovery: WorkerDiscovery,
    finish_seconds: float = _DRAIN_SECONDS,
    priority_headers: Mapping[str, str] = MappingProxyType({}),
    state: str | None = None,
) -> Process:
    """Return an entry point that is started by its filter.

    process: The entry point.
    engine: Engine of its workers, by the blueprint's key.
    host_option, port_option: Options of its program.
    discovery: How the filter learns of the deaths of workers.
    finish_seconds: Time for which a worker answers after it has left discovery.
    priority_headers: Headers with which requests of batch give way.
    state: File that keeps the suspects while the container starts again. None without one.
    """
    settings = FilterSettings(
        host_option=host_option,
        port_option=port_option,
        discovery=discovery,
        drain_seconds=min(_DRAIN_SECONDS, finish_seconds / 2),
        limits=catalog.request_limits(engine),
        priority_headers=dict(priority_headers),
        state=state,
    )
    return replace(
        process,
        command=(*_COMMAND, *process.command),
        environment={
            **process.environment,
            SETTINGS_VARIABLE: FilePath("request-filter.json", settings.as_text()),
            PROGRAM_VARIABLE: FilePath("request-filter.txt", packed_program(_MODULE)),
        },
    )


def arguments_in_front_of(port: int, behind: int) -> tuple[str, ...]:
    """Return the arguments of a filter whose program another container of the pod runs.

    port: Port at which the filter listens.
    behind: Port of the loopback address at which the program listens.
    """
    return ("--port", str(port), BEHIND_OPTION, str(behind))


def command_behind_filter(process: Process) -> tuple[str, ...]:
    """Return the command of the program of a process, without its filter."""
    filtered_command = process.command[: len(_COMMAND)] == _COMMAND
    return process.command[len(_COMMAND) :] if filtered_command else process.command
