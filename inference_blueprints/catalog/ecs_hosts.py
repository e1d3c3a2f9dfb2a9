"""The image of hosts on Amazon ECS that an Auto Scaling group starts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EcsHostImage:
    """One release of the ECS-optimized Amazon Linux 2023 image with NVIDIA's driver.

    Parameters
    ----------
    version
        Release, such as ``20260820``.
    kernel
        Minor version of its kernel, which is part of its name.
    root_volume_gib
        Space of the operating system on EBS, in GiB.
    """

    version: str
    kernel: str
    root_volume_gib: int

    @property
    def parameter(self) -> str:
        """The Systems Manager parameter that contains its ID. It names the release, so hosts change only
        with it."""
        name = f"al2023-ami-ecs-gpu-hvm-2023.0.{self.version}-kernel-{self.kernel}-x86_64-ebs"
        return f"/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/{name}/image_id"


@cache
def ecs_host_image() -> EcsHostImage:
    """Return the release that this release of the library is made for."""
    file = Path(__file__).resolve().parent / "data" / "ecs_hosts.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    return EcsHostImage(document["version"], document["kernel"], document["root_volume_gib"])
