"""Devices of a host that a task gets."""

from __future__ import annotations

from inference_blueprints.catalog.node_images import NEURON_RESOURCE, NVIDIA_RESOURCE
from inference_blueprints.serving.types import Process


def gpus(process: Process) -> int:
    """Return the number of GPUs that ECS assigns to a worker."""
    return _count(process, NVIDIA_RESOURCE)


def efa_devices(count: int) -> tuple[str, ...]:
    """Return the devices of the EFA interfaces of a host.

    Parameters
    ----------
    count
        Number of them.
    """
    return tuple(f"/dev/infiniband/uverbs{index}" for index in range(count))


def neuron_devices(process: Process) -> tuple[str, ...]:
    """Return the Neuron devices of a worker: those of its whole host.

    ECS assigns none on hosts of an Auto Scaling group, so a task names them (Amazon ECS Developer Guide,
    "Amazon ECS task definitions for AWS Neuron machine learning workloads", manual specification). Workers
    with a part of them would name the same ones, and `validate` refuses them. Without a rule of one's own,
    every user may open the devices (aws-neuron/aws-neuron-sdk, about-neuron/security.rst).
    """
    return tuple(f"/dev/neuron{index}" for index in range(_count(process, NEURON_RESOURCE)))


def _count(process: Process, resource: str) -> int:
    accelerators = process.resources.accelerators
    return accelerators.count if accelerators and accelerators.resource_name == resource else 0
