"""Sizes that a task of AWS Fargate can have (Amazon ECS Developer Guide, "Task CPU and memory")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from inference_contracts.units import MIB_PER_GIB

# CPU and memory of one batch worker, for building and for cost plans.

#: A pod on the platform's system nodes (`charts/batch-worker`).
POD_VCPU = 1
POD_MEMORY_GIB = 1

#: An AWS Fargate task; 2 GiB is the least memory for one vCPU.
TASK_VCPU = 1
TASK_MEMORY_GIB = 2

#: Factor on the number of tasks while a deployment replaces them.
TASKS_WHILE_REPLACED = 2


#: GiB of memory by vCPUs. Sizes below 1 vCPU are left out: no process of the plan has less.
_MEMORY_GIB: Mapping[int, range] = MappingProxyType(
    {1: range(2, 9), 2: range(4, 17), 4: range(8, 31), 8: range(16, 61, 4), 16: range(32, 121, 8)}
)


@dataclass(frozen=True, slots=True)
class FargateSize:
    """Size of a task: 1024 units for a vCPU, and MiB."""

    cpu_units: int
    memory_mib: int


def fargate_size(cpu: int, memory_mib: int) -> FargateSize:
    """Return the smallest size with these vCPUs and this memory.

    Parameters
    ----------
    cpu, memory_mib
        vCPUs, and memory in MiB.

    Raises
    ------
    ValueError
        If there is none so large. Frontends are smaller: `Frontend` bounds them.
    """
    for vcpus, memories in _MEMORY_GIB.items():
        fitting = [gib for gib in memories if gib * MIB_PER_GIB >= memory_mib]
        if vcpus >= cpu and fitting:
            return FargateSize(vcpus * 1024, fitting[0] * MIB_PER_GIB)
    raise ValueError(f"no task of Fargate has {cpu} vCPUs and {memory_mib} MiB")
