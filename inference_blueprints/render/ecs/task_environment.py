"""Variables of a task: those of the plan, how Dynamo's processes find each other, and names of ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from inference_blueprints.render.ecs.tasks import DiscoverySecret, TaskValue
from inference_blueprints.serving.types import (
    EnginePort,
    EnvironmentValue,
    FilePath,
    KvCacheBucket,
    OwnAddress,
    PeerAddress,
    Process,
    SecretValue,
    WeightsBucket,
)
from inference_contracts.ecs_names import (
    LEASE_SECONDS,
    discovery_endpoints,
    discovery_secret_keys,
    namespace_of,
)
from inference_contracts.records import dataclass
from inference_contracts.task_start import PORTS_OF_TASK, port_reference

# Numbers of ports in a command and its variables, as names: tasks of a host share its ports.


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


#: Arguments of Dynamo's processes.
DISCOVERY_ARGUMENTS = ("--discovery-backend", "etcd")
#: Folder of caches: every image lets any user write below /tmp, and the disk of the host holds it.
CACHE_FOLDER = "/tmp/cache"  # noqa: S108 -- in a container of its own
_CACHES = {"XDG_CACHE_HOME": CACHE_FOLDER, "HF_HOME": f"{CACHE_FOLDER}/huggingface"}
#: Folder of the files that a task writes at its start.
FILES_FOLDER = "/tmp/task-files"  # noqa: S108
# The folder of caches in the plan's arguments, which a volume holds on EKS.
_PLANNED_CACHE = "/cache"
# Time for which a process waits for the store at its start: as long as a member may take to come back.
_CONNECT_SECONDS = 600


def with_file_paths(process: Process) -> tuple[str, ...]:
    """Return a process's arguments with the paths of its files in place of ``$(NAME)``, as on Kubernetes."""
    words = process.arguments
    for name, value in process.environment.items():
        if isinstance(value, FilePath):
            words = tuple(word.replace(f"$({name})", f"{FILES_FOLDER}/{value.name}") for word in words)
    return words


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """The variables of a container."""

    values: Mapping[str, TaskValue]
    """Variables by name."""
    address: tuple[str, ...] = ()
    """Names of variables that get the address of the task."""
    files: Mapping[str, str] | None = None
    """Files to write, by path."""


def planned_environment(planned: Mapping[str, EnvironmentValue]) -> TaskEnvironment:
    """Return the plan's variables in the form of a task.

    Raises ValueError if a variable is the address of another process: Dynamo's processes find each other.
    """
    values: dict[str, TaskValue] = {}
    address: list[str] = []
    files: dict[str, str] = {}
    for name, value in sorted(planned.items()):
        match value:
            case OwnAddress():
                address.append(name)
            case FilePath():
                path = f"{FILES_FOLDER}/{value.name}"
                files[path] = value.text
                values[name] = path
            case PeerAddress():
                raise ValueError(
                    f"process '{value.process}' cannot be addressed on ECS: tasks are discovered"
                )
            case SecretValue() | WeightsBucket() | KvCacheBucket() | str():
                values[name] = value
    return TaskEnvironment(values, tuple(address), files)


def server_environment(planned: Mapping[str, EnvironmentValue]) -> TaskEnvironment:
    """Return the variables of an engine's own server, which discovers nothing.

    planned: The plan's variables.
    """
    own = planned_environment(planned)
    return TaskEnvironment({**_CACHES, **own.values}, own.address, own.files)


def serving_environment(
    planned: Mapping[str, EnvironmentValue], platform: str, release: str
) -> TaskEnvironment:
    """Return the variables of one of Dynamo's processes.

    Its address is also that of the events it publishes. The variables of discovery are those of
    ``lib/runtime`` of ai-dynamo/dynamo 1.6.1 (``transports/etcd``, ``config``).

    platform: `metadata.name`.
    release: Name of the deployment, whose certificate it shows to the discovery store.
    """
    own = planned_environment(planned)
    values: dict[str, TaskValue] = {
        **_CACHES,
        "DYN_DISCOVERY_BACKEND": "etcd",
        "DYN_EVENT_PLANE": "zmq",
        "DYN_REQUEST_PLANE": "tcp",
        "ETCD_ENDPOINTS": discovery_endpoints(platform),
        "ETCD_LEASE_TTL": str(LEASE_SECONDS),
        "ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS": str(_CONNECT_SECONDS),
        **{name: DiscoverySecret(key) for name, key in discovery_secret_keys(namespace_of(release)).items()},
        **own.values,
    }
    return TaskEnvironment(values, tuple(sorted({*own.address, "DYN_EVENT_PLANE_HOST"})), own.files)


def with_cache_folder(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command whose caches are in `CACHE_FOLDER`."""
    return tuple(re.sub(f'(^|"){_PLANNED_CACHE}/', rf"\g<1>{CACHE_FOLDER}/", word) for word in words)
