"""Bottlerocket's settings for nodes that pull large images."""

from __future__ import annotations

from inference_catalog.image_cache import SNAPSHOTTER

#: SOCI parallel pull, for every image and without an index. It downloads several parts of a layer at once,
#: unpacks during the download, and keeps no compressed layers (Bottlerocket documentation,
#: settings.container-runtime-plugins).
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

#: EFA needs locked memory, and a pod's default limit for it is far too small (Bottlerocket documentation,
#: settings.oci-defaults.resource-limits). On nodes with EFA, Bottlerocket would reserve 220 MiB per vCPU as
#: huge pages (bottlerocket-core-kit, corndog), 41 GiB on a P5. No pod of this library requests huge pages.
#: Karpenter counts this memory as free and would assign pods to nodes that do not have it.
_EFA = """\

[settings.oci-defaults.resource-limits.max-locked-memory]
hard-limit = "unlimited"
soft-limit = "unlimited"

[settings.kernel.sysctl]
"vm/nr_hugepages" = "0"
"""

#: Neuron devices belong to root, and workers run as another user (QUICKSTART-EKS.md of
#: bottlerocket-os/bottlerocket, Neuron Support; https://github.com/bottlerocket-os/bottlerocket/pull/4400).
_NEURON = """\

[settings.kubernetes]
device-ownership-from-security-context = true
"""


def settings(*, efa: bool = False, neuron: bool = False) -> str:
    """Return the user data of nodes, in TOML.

    efa: Whether pods register memory with EFA interfaces.
    neuron: Whether pods use Neuron devices.
    """
    return PARALLEL_PULL + (_EFA if efa else "") + (_NEURON if neuron else "")


def baking_settings() -> str:
    """Return the user data of an instance that bakes images. The admin container gives access to the host."""
    return PARALLEL_PULL + "\n[settings.host-containers.admin]\nenabled = true\n"
