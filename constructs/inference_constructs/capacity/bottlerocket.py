"""Bottlerocket's settings for nodes that pull large images."""

from __future__ import annotations

from inference_blueprints.catalog.image_cache import SNAPSHOTTER
from inference_blueprints.catalog.releases import NodeImage

#: SOCI parallel pull, for every image and without an index: several parts of a layer at once, unpacked while
#: others still come, no layer kept twice (Bottlerocket documentation, settings.container-runtime-plugins).
PARALLEL_PULL = f"""\
[settings.container-runtime]
snapshotter = "{SNAPSHOTTER}"

[settings.container-runtime-plugins.soci-snapshotter]
pull-mode = "parallel-pull-unpack"

[settings.container-runtime-plugins.soci-snapshotter.parallel-pull-unpack]
max-concurrent-downloads-per-image = 20
concurrent-download-chunk-size = "16mb"
max-concurrent-unpacks-per-image = 12
discard-unpacked-layers = true
"""

#: EFA reads and writes memory that stays where it is; a pod's default limit on that is far too small
#: (Bottlerocket documentation, settings.oci-defaults.resource-limits). Where Bottlerocket finds EFA it would
#: set 220 MiB a vCPU aside as huge pages (bottlerocket-core-kit, corndog), 41 GiB of a P5: no pod here can
#: ask for them, and Karpenter, which counts them as free, would send pods to nodes that have no such memory.
_EFA = """\

[settings.oci-defaults.resource-limits.max-locked-memory]
hard-limit = "unlimited"
soft-limit = "unlimited"

[settings.kernel.sysctl]
"vm/nr_hugepages" = "0"
"""


def image_parameter(image: NodeImage, architecture: str, *, nvidia: bool) -> str:
    """Return where AWS publishes the id of an image: a parameter of Systems Manager.

    Karpenter's alias would follow the control plane; the parameter names the version of Kubernetes, so that
    nodes change when their pool does (the alias stands for the same ones in Karpenter's
    pkg/providers/amifamily/bottlerocket.go).

    Parameters
    ----------
    image
        Kubernetes and release.
    architecture
        ``amd64`` or ``arm64``.
    nvidia
        Whether the nodes have NVIDIA's GPUs: that variant has drivers and device plug-in on board.
    """
    variant = f"aws-k8s-{image.kubernetes}{'-nvidia' if nvidia else ''}"
    machine = "x86_64" if architecture == "amd64" else architecture
    return f"/aws/service/bottlerocket/{variant}/{machine}/{image.bottlerocket.removeprefix('v')}/image_id"


def settings(*, efa: bool = False) -> str:
    """Return the user data of nodes, in TOML.

    Parameters
    ----------
    efa
        Whether pods register memory with EFA interfaces.
    """
    return PARALLEL_PULL + _EFA if efa else PARALLEL_PULL


def baking_settings() -> str:
    """Return the user data of an instance that only unpacks images; the admin container leads to the host."""
    return PARALLEL_PULL + "\n[settings.host-containers.admin]\nenabled = true\n"
