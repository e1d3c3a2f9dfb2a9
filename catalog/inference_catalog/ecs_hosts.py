"""What tasks of Amazon ECS run on: hosts, and sizes of AWS Fargate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from inference_catalog.hardware import InstanceType
from inference_contracts.records import dataclass
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


#: Which of the images of a release hosts boot.
EcsHostKind = Literal["gpu", "neuron", "arm64", "amd64"]


@dataclass(frozen=True, slots=True)
class EcsHostImage:
    """One release of the ECS-optimized Amazon Linux 2023 images."""

    version: str
    """Release, such as ``20260820``."""
    kernel: str
    """Minor version of its kernel, which is part of its name."""
    root_volume_gib: int
    """Space of the operating system on EBS, in GiB."""

    def parameter(self, kind: EcsHostKind) -> str:
        """Return the Systems Manager parameter with the ID of an image.

        It names the release, so that hosts change only with it.

        Parameters
        ----------
        kind
            ``gpu`` has NVIDIA's driver, and ``neuron`` that of Inferentia and Trainium. ``arm64`` and
            ``amd64`` are for hosts without accelerators.
        """
        release = f"2023.0.{self.version}-kernel-{self.kernel}"
        name = {
            "gpu": f"gpu/al2023-ami-ecs-gpu-hvm-{release}-x86_64-ebs",
            "neuron": f"neuron/al2023-ami-ecs-neuron-hvm-{release}-x86_64",
            "arm64": f"arm64/al2023-ami-ecs-hvm-{release}-arm64",
            "amd64": f"al2023-ami-ecs-hvm-{release}-x86_64",
        }[kind]
        return f"/aws/service/ecs/optimized-ami/amazon-linux-2023/{name}/image_id"


def host_kind(instance_type: InstanceType) -> EcsHostKind:
    """Return which image an instance boots.

    Parameters
    ----------
    instance_type
        Its type.
    """
    accelerator = instance_type.accelerator
    if accelerator is None or not instance_type.device_resource:
        return instance_type.architecture
    return "gpu" if accelerator.manufacturer == "nvidia" else "neuron"


@cache
def ecs_host_image() -> EcsHostImage:
    """Return the release that this release of the library is made for."""
    file = Path(__file__).resolve().parent / "data" / "ecs_hosts.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    return EcsHostImage(document["version"], document["kernel"], document["root_volume_gib"])
