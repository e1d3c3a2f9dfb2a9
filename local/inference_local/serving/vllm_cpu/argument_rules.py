"""How an argument of a planned vLLM worker differs on this machine, and what differs for every process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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

# What differs for every process on this machine: how it finds others, addresses, files and logs.

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


#: What the table of exceptions says of a setting that is not used here.
LEFT_OUT = "left out"

#: The words after an argument.
Values = tuple[str, ...]
# Each worker has so many ports, one per data parallel rank.
_PORTS = 10


@dataclass(frozen=True, slots=True)
class RuledWorker:
    """A worker's address and model, its planned arguments, and whether its attention is latent."""

    address: str
    model_directory: Path
    planned: Mapping[str, Values]
    latent_attention: bool

    @property
    def draft_directory(self) -> Path:
        """Folder of the small draft."""
        return draft_directory(self.model_directory)

    @property
    def kv_cache_directory(self) -> Path:
        """Folder of this worker for KV cache on disk."""
        return self.model_directory.with_name("kv-cache") / self.address

    def own_port(self, planned: int) -> str:
        """Return a port that no other worker of this machine has, instead of one that all would share."""
        number = self.address.rpartition(".")[2]
        if not number.isdigit():  # the description of all workers has an x
            return f"{planned}+{_PORTS}{number}"
        return str(planned + _PORTS * int(number))


@dataclass(frozen=True, slots=True)
class Rule:
    """How one argument differs on this machine."""

    here: Callable[[Values, RuledWorker], Values | None]
    """Returns the values on this machine from the planned ones; None if the argument is left out."""
    reason: str
    """Why it differs."""
    shown: str = LEFT_OUT
    """The value on this machine in words."""
    reason_of: Callable[[Values, RuledWorker], str] | None = None
    """Returns the reason from the planned values and the worker, if it depends on them."""

    def why(self, values: Values, worker: RuledWorker) -> str:
        """Return why it differs for a worker."""
        return self.reason_of(values, worker) if self.reason_of else self.reason


def draft_directory(model_directory: Path) -> Path:
    """Return the folder of the small draft beside that of a small model."""
    return model_directory.with_name("draft")
