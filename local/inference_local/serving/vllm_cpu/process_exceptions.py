"""What differs for every process on this machine: how it finds others, addresses, files and logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from inference_blueprints.serving.types import (
    EnvironmentValue,
    FilePath,
    KvCacheBucket,
    OwnAddress,
    PeerAddress,
    SecretValue,
    WeightsBucket,
)
from inference_local.serving.platform_parts import Replacement
from inference_local.serving.process_commands import (
    CONNECTED,
    DISCOVERY,
    NO_SECRETS,
    OWN_ADDRESS,
    OWN_FOLDER,
    own_variables,
)

#: What a value of the plan is that is known on EKS only.
_KNOWN_THERE: Mapping[type[EnvironmentValue], str] = MappingProxyType(
    {
        FilePath: "a file",
        KvCacheBucket: "the bucket of KV cache",
        OwnAddress: "the pod's address",
        PeerAddress: "another pod's address",
        SecretValue: "a secret",
        WeightsBucket: "the bucket of weights",
    }
)


def planned_text(value: EnvironmentValue | None) -> str:
    """Return a planned variable as the table of exceptions shows it."""
    if value is None:
        return "not set"
    return value if isinstance(value, str) else _KNOWN_THERE[type(value)]


def process_exceptions() -> Iterator[tuple[str, str, str]]:
    """Yield each setting of every process that differs, what it is here, and the reason."""
    flag, value = DISCOVERY
    yield f"`{flag}` of Dynamo's processes", f"`{value}`", CONNECTED
    here = own_variables(Path("FOLDER"), "the worker's own address")
    for name, (own, reason) in here.items():
        yield f"`{name}`", own if " " in own else f"`{own}`", reason
    yield "variables with the pod's address", "the worker's own address", OWN_ADDRESS
    yield "variables with the path of a file", "a path on this machine", OWN_FOLDER
    yield "variables from secrets", "left out", NO_SECRETS


def process_replacements(
    planned: Mapping[str, EnvironmentValue], workers: str, home: Path, address: str, *, dynamo: bool
) -> Iterator[Replacement]:
    """Yield what differs for a planned process because it is one of this machine.

    planned: Its variables, as `process_commands.environment` takes them.
    workers: Its deployment and role, for the table of exceptions.
    home, address: As for `process_commands.environment`.
    dynamo: Whether it finds other processes by Dynamo's discovery.
    """
    flag, value = DISCOVERY
    if dynamo:
        yield Replacement(workers, flag, "not set", value, CONNECTED)
    own = own_variables(home, address)
    for name, (here, reason) in own.items():
        yield Replacement(workers, name, planned_text(planned.get(name)), here, reason)
    for name, kept in planned.items():
        if not isinstance(kept, str) and name not in own:
            yield Replacement(workers, name, planned_text(kept), *_here(kept, home, address))


def _here(value: EnvironmentValue, home: Path, address: str) -> tuple[str, str]:
    """Return what a value that EKS provides is on this machine, and the reason."""
    if isinstance(value, SecretValue):
        return "left out", NO_SECRETS
    if isinstance(value, FilePath):
        return str(home / value.name), OWN_FOLDER
    return address, OWN_ADDRESS
