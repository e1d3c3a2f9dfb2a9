"""Snapshots of data volumes with images on them: where they are made, and how they are known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.catalog.releases import NodeImage

#: Last part of the name of the stack that bakes them, and its outputs.
STACK = "ImageCache"
STATE_MACHINE_OUTPUT = "StateMachineArn"
BOTTLEROCKET_OUTPUT = "Bottlerocket"

#: Tags of a snapshot, beside the platform's: for which pool, which images, and what they were unpacked by.
POOL_TAG = "inference-blueprints:pool"
IMAGES_TAG = "inference-blueprints:images"
BOTTLEROCKET_TAG = "inference-blueprints:bottlerocket"
SNAPSHOTTER_TAG = "inference-blueprints:snapshotter"

#: What unpacks images. Those of a data volume can be used by the same one alone, and Bottlerocket empties the
#: volume where another one had been in use (https://github.com/bottlerocket-os/bottlerocket-core-kit/pull/582).
SNAPSHOTTER = "soci"

#: Bottlerocket's volume for containers; images and logs lie there.
DATA_DEVICE = "/dev/xvdb"

#: MiB/s at which EBS fetches a new volume's blocks, the most that can be had; without it the rate is unknown
#: and was seen to be far lower (https://docs.aws.amazon.com/ebs/latest/userguide/initalize-volume.html,
#: https://github.com/aws-samples/bottlerocket-images-cache/issues/13).
INITIALIZATION_MIB_PER_SECOND = 300

#: What pulls and unpacks, by architecture: no accelerator is needed for that.
INSTANCE_TYPES: Mapping[str, str] = MappingProxyType({"amd64": "m7i.2xlarge", "arm64": "m7g.2xlarge"})


def variant(image: NodeImage) -> str:
    """Return what nodes boot as one word, such as ``aws-k8s-1.35/v1.66.0``.

    Parameters
    ----------
    image
        Kubernetes, whose kubelet and containerd come with it, and release.
    """
    return f"aws-k8s-{image.kubernetes}/{image.bottlerocket}"
