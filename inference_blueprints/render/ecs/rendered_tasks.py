"""The tasks of a deployment: frontends on Fargate, workers on the hosts of their pool.

A worker that the load balancer reaches itself has an address of its own (``awsvpc``), so its port is fixed
and its target group is like that of frontends. Dynamic ports of hosts need the network mode ``bridge``, which
Managed Instances do not have (Amazon ECS Developer Guide, "Amazon ECS task networking for Amazon ECS Managed
Instances").

Workers of Managed Instances have an address of their own too. In the network of the host they would reach its
metadata and so its credentials, and nothing of ours runs on such a host to forbid it. For ``awsvpc``, ECS's
agent routes the metadata's addresses to nowhere, and a container without NET_ADMIN cannot change that
(aws/amazon-ecs-agent, ``ecs-agent/netlib/platform/managed_linux.go``, branchENIConfig).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace

from inference_blueprints.render.ecs.caller_containers import (
    after_callers,
    caller_containers,
    caller_volumes,
)
from inference_blueprints.render.ecs.task_devices import (
    NeuronHosts,
    efa_devices,
    gpus,
    neuron_devices,
    neuron_locks,
)
from inference_blueprints.render.ecs.task_environment import (
    CACHE_FOLDER,
    DISCOVERY_ARGUMENTS,
    named_arguments,
    named_variables,
    planned_environment,
    port_positions,
    server_environment,
    serving_environment,
    with_cache_folder,
    with_file_paths,
)
from inference_blueprints.render.ecs.task_program import (
    LOAD_CONTAINER,
    PROGRAM_ENTRY_POINT,
    TASK_PROGRAM,
    artefact_containers,
    artefact_mounts,
    artefact_volumes,
    program_arguments,
    program_command,
    task_program,
)
from inference_blueprints.render.ecs.tasks import (
    Compute,
    Dependency,
    RenderedContainer,
    RenderedTask,
    TaskHealth,
    TaskMount,
    TaskValue,
    TaskVolume,
)
from inference_blueprints.serving.types import DeploymentPlan, HttpProbe, NodeCache, Process
from inference_catalog.ecs_hosts import fargate_size
from inference_catalog.log_groups import model_log_group
from inference_contracts.ecs_names import (
    MAIN_CONTAINER,
    NODE_CACHE_CONTAINER,
    SHARED_FOLDER,
    SYSTEM_PORT,
    TASK_START_VARIABLE,
    WEIGHTS_CONTAINER,
    namespace_of,
    service_name,
)
from inference_contracts.records import dataclass
from inference_contracts.task_start import TaskNetwork, TaskStart
from inference_contracts.task_tags import METRICS_ADDRESS_TAG

_CPU_UNITS = 1024
# The user of the engines' images on every target; group 0 may write to the host's shared folder.
_USER = "1000:0"
# Longest time of Fargate between SIGTERM and SIGKILL (``stopTimeout``, API reference). Frontends need less:
# ECS first waits until the load balancer has ended their streams.
_MAX_FARGATE_STOP_SECONDS = 120
# Longest ``startPeriod`` of a health check. The service's grace period covers the rest of the start.
_MAX_START_PERIOD_SECONDS = 300
_FILL_STOP_SECONDS = 30
# The container that waits for the copy of the weights, for as long as a copy may take.
_WAIT_CPU_UNITS, _WAIT_MEMORY_MIB, _WAIT_SECONDS = 102, 512, 6 * 3600
# What the containers find of the host's shared folder: see ``runtime/weights/node_store.py``.
_NODE, _NODE_PARTS = "/node", ("locks", "complete")


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where the tasks of a platform run."""

    platform: str
    """`metadata.name`."""
    computes: Mapping[str, Compute]
    """What runs the hosts of each pool."""
    efa_devices: Mapping[str, int]
    """EFA interfaces of each host of a pool. 0 without EFA."""
    neuron_hosts: Mapping[str, NeuronHosts]
    """The hosts of each pool with Neuron devices."""


def deployment_tasks(deployment: DeploymentPlan, place: TaskPlace) -> tuple[RenderedTask, ...]:
    """Return the task of each process, in the order of the plan.

    Workers of one configuration find each other under one name, and those of the next one do not mix with
    them: Dynamo's frontend refuses workers whose configuration differs from that of the first.

    Raises ValueError if a process cannot run on ECS: `validate` reports it before.
    """
    tasks = [
        _worker(deployment, process, place) if process.is_worker else _frontend(deployment, process, place)
        for process in deployment.processes
    ]
    workers = [task for process, task in zip(deployment.processes, tasks, strict=True) if process.is_worker]
    suffix = hashlib.sha256(repr(workers).encode()).hexdigest()[:8]
    return tuple(
        _with_suffix(task, suffix) if process.is_worker and process is not deployment.entry_point else task
        for process, task in zip(deployment.processes, tasks, strict=True)
    )


def _with_suffix(task: RenderedTask, suffix: str) -> RenderedTask:
    """Add the name of the configuration to the main container (``DYN_NAMESPACE_WORKER_SUFFIX`` of Dynamo)."""
    return replace(
        task,
        containers=tuple(
            replace(each, environment={**each.environment, "DYN_NAMESPACE_WORKER_SUFFIX": suffix})
            if each.name == MAIN_CONTAINER
            else each
            for each in task.containers
        ),
    )


def _frontend(deployment: DeploymentPlan, process: Process, place: TaskPlace) -> RenderedTask:
    beside = caller_containers(process)
    cpu_units, memory = (
        sum(each.cpu_units for each in beside),
        sum(each.memory_mib for each in beside),
    )
    size = fargate_size(
        process.resources.cpu + math.ceil(cpu_units / _CPU_UNITS), process.resources.memory_mib + memory
    )
    environment = serving_environment(process.environment, place.platform, deployment.release)
    start = TaskStart(
        network="awsvpc",
        address=environment.address,
        files=environment.files or {},
        tag={METRICS_ADDRESS_TAG: process.called_port},
    )
    container = RenderedContainer(
        name=MAIN_CONTAINER,
        image=process.image,
        entry_point=PROGRAM_ENTRY_POINT,
        command=_command(process, process.arguments, DISCOVERY_ARGUMENTS),
        cpu_units=size.cpu_units - cpu_units,
        memory_mib=size.memory_mib - memory,
        environment={
            **environment.values,
            "DYN_NAMESPACE_PREFIX": namespace_of(deployment.release),
            TASK_START_VARIABLE: start.as_text(),
            TASK_PROGRAM: task_program("task_start"),
        },
        user=_USER,
        port=deployment.target_port,
        depends_on=after_callers(process),
        stop_timeout_seconds=min(
            _MAX_FARGATE_STOP_SECONDS, process.termination_grace_seconds - process.pre_stop_seconds
        ),
    )
    return RenderedTask(
        family=_family(deployment, process, place),
        compute="fargate",
        network="awsvpc",
        architecture=process.architecture,
        cpu_units=size.cpu_units,
        memory_mib=size.memory_mib,
        containers=(*beside, container),
        volumes=caller_volumes(process),
        log_group=model_log_group(place.platform, deployment.model),
        log_prefix=service_name(deployment.name, process.name),
    )


def _worker(deployment: DeploymentPlan, process: Process, place: TaskPlace) -> RenderedTask:
    if not process.has_python:
        return _server_task(deployment, process, place)
    pool, sizes, cache = process.pool or "", process.resources, process.node_cache
    reached = process is deployment.entry_point
    compute = place.computes[pool]
    network: TaskNetwork = "awsvpc" if reached or compute == "managed" else "host"
    environment = (
        server_environment(process.environment)
        if reached
        else serving_environment(process.environment, place.platform, deployment.release)
    )
    discovered = {} if reached else {"DYN_NAMESPACE": namespace_of(deployment.release)}
    hosts = place.neuron_hosts.get(pool)
    neuron = hosts.part(process) if hosts else None
    lock_volumes, lock_mounts = neuron_locks(neuron)
    start = TaskStart(
        network=network,
        ports=port_positions(process.engine_ports),
        address=environment.address,
        files=environment.files or {},
        tag={METRICS_ADDRESS_TAG: process.called_port if reached else SYSTEM_PORT},
        efa_interfaces=sizes.efa_interfaces if process.capabilities else 0,
        lock_folder=_NODE if cache else None,
        lock_entries=_entries(cache) if cache else (),
        neuron=neuron,
    )
    shared = sizes.shared_memory_mib if compute == "group" else 0
    others = (
        *((_fill(process, cache),) if cache else ()),
        *((_wait(process, environment.values),) if process.awaits_weights else ()),
        *artefact_containers(process, _USER),
        *caller_containers(process),
    )
    cpu_units = sizes.cpu * _CPU_UNITS
    if hosts and neuron:
        cpu_units = hosts.cpu_units(neuron) - sum(each.cpu_units for each in others)
    main = RenderedContainer(
        name=MAIN_CONTAINER,
        image=process.image,
        entry_point=PROGRAM_ENTRY_POINT,
        command=_command(
            process,
            named_arguments(with_file_paths(process), process.engine_ports),
            () if reached else DISCOVERY_ARGUMENTS,
        ),
        cpu_units=cpu_units,
        memory_mib=sizes.memory_mib,
        # Placement counts the shared memory in addition, and its pages count towards the limit.
        reservation_mib=sizes.memory_mib - shared if shared else None,
        environment={
            **environment.values,
            **named_variables(process.engine_ports),
            **discovered,
            TASK_START_VARIABLE: start.as_text(),
            TASK_PROGRAM: task_program("task_start"),
        },
        user=_USER,
        port=deployment.target_port if reached else None,
        gpus=gpus(process),
        shared_memory_mib=shared,
        devices=(
            *efa_devices(place.efa_devices[pool] if process.capabilities else 0),
            *neuron_devices(neuron),
        ),
        capabilities=process.capabilities,
        locks_memory="IPC_LOCK" in process.capabilities,
        mounts=(*(_mounts(cache) if cache else ()), *artefact_mounts(process), *lock_mounts),
        depends_on=(
            *((Dependency(NODE_CACHE_CONTAINER, "SUCCESS"),) if cache else ()),
            *((Dependency(WEIGHTS_CONTAINER, "SUCCESS"),) if process.awaits_weights else ()),
            *((Dependency(LOAD_CONTAINER, "SUCCESS"),) if process.artefacts else ()),
            *after_callers(process),
        ),
        # ECS first waits until the load balancer has ended the requests of a task that it reaches.
        stop_timeout_seconds=process.termination_grace_seconds - (process.pre_stop_seconds if reached else 0),
        health=None if reached else _live_check(process.probes.liveness),
    )
    return RenderedTask(
        family=_family(deployment, process, place),
        compute=compute,
        network=network,
        architecture=process.architecture,
        containers=(*others, main),
        volumes=(
            *(_volumes(cache) if cache else ()),
            *artefact_volumes(process),
            *lock_volumes,
            *caller_volumes(process),
        ),
        log_group=model_log_group(place.platform, deployment.model),
        log_prefix=service_name(deployment.name, process.name),
    )


def _server_task(deployment: DeploymentPlan, process: Process, place: TaskPlace) -> RenderedTask:
    """Return the task of a server whose image has no Python, so that nothing of ours runs in it.

    The load balancer reaches and checks it. Its metrics have a fixed port, which a tag of its service names.

    Raises ValueError if it needs a program of ours: one that it starts with, or one that prepares its
    weights.
    """
    sizes, environment = process.resources, server_environment(process.environment)
    if process is not deployment.entry_point or process.node_cache or process.awaits_weights:
        raise ValueError(f"{process.name} of {deployment.release} needs programs that its image cannot run")
    if environment.address or environment.files or process.engine_ports or process.capabilities:
        raise ValueError(
            f"{process.name} of {deployment.release} has settings that are known at its start only"
        )
    main = RenderedContainer(
        name=MAIN_CONTAINER,
        image=process.image,
        entry_point=process.command,
        command=with_cache_folder(process.arguments),
        cpu_units=sizes.cpu * _CPU_UNITS,
        memory_mib=sizes.memory_mib,
        environment=environment.values,
        user=_USER,
        port=deployment.target_port,
        gpus=gpus(process),
        depends_on=after_callers(process),
        stop_timeout_seconds=process.termination_grace_seconds - process.pre_stop_seconds,
    )
    return RenderedTask(
        family=_family(deployment, process, place),
        compute=place.computes[process.pool or ""],
        network="awsvpc",
        architecture=process.architecture,
        containers=(*caller_containers(process), main),
        volumes=caller_volumes(process),
        log_group=model_log_group(place.platform, deployment.model),
        log_prefix=service_name(deployment.name, process.name),
    )


def _live_check(live: HttpProbe) -> TaskHealth:
    """Return the check of a worker that no load balancer checks."""
    return TaskHealth(
        command=tuple(program_command("task_start.live_check")),
        interval_seconds=live.period_seconds,
        timeout_seconds=live.timeout_seconds,
        retries=live.failure_threshold,
        start_seconds=_MAX_START_PERIOD_SECONDS,
    )


def _fill(process: Process, cache: NodeCache) -> RenderedContainer:
    """Return the container that fills the host's copy, and ends before the worker starts."""
    return RenderedContainer(
        name=NODE_CACHE_CONTAINER,
        image=process.image,
        entry_point=PROGRAM_ENTRY_POINT,
        command=program_arguments("task_start.node_fill"),
        essential=False,
        cpu_units=cache.cpu * _CPU_UNITS,
        memory_mib=cache.memory_mib,
        environment={
            "HF_HOME": f"{CACHE_FOLDER}/huggingface",
            "PYTHONUNBUFFERED": "1",
            **planned_environment(cache.environment).values,
            TASK_PROGRAM: task_program("task_start.node_fill"),
        },
        user=_USER,
        mounts=(TaskMount("node", _NODE),),
        start_timeout_seconds=cache.fill_seconds,
        stop_timeout_seconds=_FILL_STOP_SECONDS,
    )


def _wait(process: Process, environment: Mapping[str, TaskValue]) -> RenderedContainer:
    """Return the container that ends when the bucket contains the complete model."""
    return RenderedContainer(
        name=WEIGHTS_CONTAINER,
        image=process.image,
        entry_point=PROGRAM_ENTRY_POINT,
        command=program_arguments("weights.wait"),
        essential=False,
        cpu_units=_WAIT_CPU_UNITS,
        memory_mib=_WAIT_MEMORY_MIB,
        environment={
            "PYTHONUNBUFFERED": "1",
            **{name: value for name, value in environment.items() if name.startswith("WEIGHTS_")},
            TASK_PROGRAM: task_program("weights.wait"),
        },
        user=_USER,
        start_timeout_seconds=_WAIT_SECONDS,
        stop_timeout_seconds=_FILL_STOP_SECONDS,
    )


def _entries(cache: NodeCache) -> tuple[str, ...]:
    """Return the folders of the host that the worker uses."""
    weights = (f"weights/{cache.weights}",) if cache.weights else ()
    return (*weights, f"compiled/{cache.compiled}")


def _volumes(cache: NodeCache) -> tuple[TaskVolume, ...]:
    """Return the shared folder, and the parts of it that the worker sees once they are filled."""
    parts = [("compiled", f"compiled/{cache.compiled}"), *((part, part) for part in _NODE_PARTS)]
    if cache.weights:
        parts.append(("weights", f"weights/{cache.weights}"))
    return (
        TaskVolume("node", SHARED_FOLDER),
        *(TaskVolume(name, f"{SHARED_FOLDER}/{folder}") for name, folder in parts),
    )


def _mounts(cache: NodeCache) -> tuple[TaskMount, ...]:
    """Return what the worker sees: its own weights, read-only, its release's kernels, and the locks."""
    weights = (TaskMount("weights", cache.weights_path, read_only=True),) if cache.weights_path else ()
    locks = (TaskMount(part, f"{_NODE}/{part}", read_only=True) for part in _NODE_PARTS)
    return (*weights, TaskMount("compiled", cache.compiled_path), *locks)


def _command(process: Process, arguments: tuple[str, ...], further: tuple[str, ...]) -> tuple[str, ...]:
    words = (*process.command, *with_cache_folder(arguments), *further)
    return program_arguments("task_start", "--", *words)


def _family(deployment: DeploymentPlan, process: Process, place: TaskPlace) -> str:
    return f"{place.platform}-{service_name(deployment.release, process.name)}"
