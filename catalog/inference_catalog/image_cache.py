"""Snapshots of data volumes with container images: names, tags and settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_catalog.releases import NodeImage

#: Name suffix of the stack that creates the snapshots, and its outputs.
STACK = "ImageCache"
STATE_MACHINE_OUTPUT = "StateMachineArn"
BOTTLEROCKET_OUTPUT = "Bottlerocket"

#: Tags of a snapshot, in addition to the platform's: pool, images, and the variant that unpacked them.
POOL_TAG = "inference-blueprints:pool"
IMAGES_TAG = "inference-blueprints:images"
BOTTLEROCKET_TAG = "inference-blueprints:bottlerocket"
SNAPSHOTTER_TAG = "inference-blueprints:snapshotter"

#: Software that unpacks images. The images of a data volume can be used only with the same software.
#: Bottlerocket empties a volume that was used with another one
#: (https://github.com/bottlerocket-os/bottlerocket-core-kit/pull/582).
SNAPSHOTTER = "soci"

#: Bottlerocket's data volume, which holds images and logs of containers.
DATA_DEVICE = "/dev/xvdb"

#: MiB/s at which EBS initializes a new volume: the highest value that can be requested. Without it the rate
#: is not specified, and measured rates were far lower
#: (https://docs.aws.amazon.com/ebs/latest/userguide/initalize-volume.html,
#: https://github.com/aws-samples/bottlerocket-images-cache/issues/13).
INITIALIZATION_MIB_PER_SECOND = 300

#: Instance types that pull and unpack images, by architecture. No accelerator is needed.
INSTANCE_TYPES: Mapping[str, str] = MappingProxyType({"amd64": "m7i.2xlarge", "arm64": "m7g.2xlarge"})


def variant(image: NodeImage) -> str:
    """Return the operating system variant and release of nodes, such as ``aws-k8s-1.35/v1.66.0``.

    Parameters
    ----------
    image
        Kubernetes version, which decides kubelet and containerd, and release.
    """
    return f"aws-k8s-{image.kubernetes}/{image.bottlerocket}"
