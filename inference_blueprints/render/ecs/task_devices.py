"""Devices of a host that a task gets."""

from __future__ import annotations

from inference_blueprints.render.ecs.tasks import TaskMount, TaskVolume
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Pool
from inference_catalog.ecs_hosts import host_kind
from inference_catalog.neuron import neuron_route
from inference_catalog.node_images import NEURON_RESOURCE, NVIDIA_RESOURCE
from inference_contracts.ecs_names import NEURON_LOCKS_FOLDER
from inference_contracts.records import dataclass
from inference_contracts.task_start import NeuronPart

_CPU_UNITS = 1024
# vCPUs of a host that its tasks leave to the system, as in the plan.
_SYSTEM_VCPUS = 1
_VOLUME, _LOCKS = "neuron", "/neuron"


@dataclass(frozen=True, slots=True)
class NeuronHosts:
    """The hosts of a pool with Neuron devices, which are all alike: `validate` refuses others."""

    devices: int
    cores: int
    """Logical cores of a device."""
    variable: str
    """Variable with the cores of a server."""
    vcpus: int
    """vCPUs of a host."""

    def part(self, process: Process) -> NeuronPart | None:
        """Return the part of a host that a worker takes when it starts; None for one without devices."""
        devices = _count(process, NEURON_RESOURCE)
        if not devices:
            return None
        return NeuronPart(
            folder=_LOCKS, devices=devices, of=self.devices, cores=self.cores, variable=self.variable
        )

    def cpu_units(self, part: NeuronPart) -> int:
        """Return the CPU units of a task, with which a host has room for as many tasks as it has parts.

        ECS does not count Neuron devices, and it registers 1024 units per vCPU. A host has more vCPUs than
        parts, so one task more than there are parts has no room. A container without other work uses more
        CPU than its units (``cpu`` of ContainerDefinition, Amazon ECS API Reference).
        """
        return (self.vcpus - _SYSTEM_VCPUS) * _CPU_UNITS // (self.devices // part.devices)


def neuron_hosts(pool: Pool) -> NeuronHosts | None:
    """Return the hosts of a pool; None if they have no Neuron devices, or AWS documents no server for them.

    pool: A pool without errors.
    """
    known = pool.types[0]
    route = neuron_route(known.accelerator) if known.accelerator else None
    if host_kind(known) != "neuron" or known.accelerator is None or route is None:
        return None
    return NeuronHosts(known.accelerator_count, known.accelerator.cores, route.cores_variable, known.vcpu)


def gpus(process: Process) -> int:
    """Return the number of GPUs that ECS assigns to a worker."""
    return _count(process, NVIDIA_RESOURCE)


def efa_devices(count: int) -> tuple[str, ...]:
    """Return the devices of the EFA interfaces of a host.

    count: Number of them.
    """
    return tuple(f"/dev/infiniband/uverbs{index}" for index in range(count))


def neuron_devices(part: NeuronPart | None) -> tuple[str, ...]:
    """Return the Neuron devices that a worker may open: all of its host.

    ECS assigns none on hosts of an Auto Scaling group, so a task names them (Amazon ECS Developer Guide,
    "Amazon ECS task definitions for AWS Neuron machine learning workloads", manual specification). Which of
    them it uses is known when it starts. Containers of a host can share devices, and not cores
    (``deploy/faq.rst`` of aws-neuron/aws-neuron-sdk at 81ce03a). Without a rule of one's own, every user may
    open them (``about-neuron/security.rst``).
    """
    return tuple(f"/dev/neuron{index}" for index in range(part.of)) if part else ()


def neuron_locks(part: NeuronPart | None) -> tuple[tuple[TaskVolume, ...], tuple[TaskMount, ...]]:
    """Return the folder of locks of the host, which its user data makes, and where the engine finds it."""
    if part is None:
        return (), ()
    return (TaskVolume(_VOLUME, NEURON_LOCKS_FOLDER),), (TaskMount(_VOLUME, part.folder),)


def _count(process: Process, resource: str) -> int:
    accelerators = process.resources.accelerators
    return accelerators.count if accelerators and accelerators.resource_name == resource else 0
