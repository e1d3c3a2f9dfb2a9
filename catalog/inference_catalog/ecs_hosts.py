"""The image of hosts on Amazon ECS that an Auto Scaling group starts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from inference_catalog.hardware import InstanceType

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
