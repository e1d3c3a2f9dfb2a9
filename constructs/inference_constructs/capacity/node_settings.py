"""Settings of nodes that pull large images: Amazon Linux 2023 and Bottlerocket."""

from __future__ import annotations

from inference_catalog.image_cache import SNAPSHOTTER

# Settings of Amazon Linux 2023 for nodes with NVIDIA GPUs and EFA that pull large images.
#
# nodeadm configures the node from user data (https://awslabs.github.io/amazon-eks-ami/nodeadm/). The settings
# are those of `bottlerocket` in its form. Files in comments are those of awslabs/amazon-eks-ami.

#: Containers' limit of locked memory, in bytes: a pebibyte, more than any instance has. nodeadm reads numbers
#: as 64-bit floats (``nodeadm/internal/util/merge.go``), so the value that means "unlimited" would change.
_LOCKED_MEMORY_BYTES = 2**50

#: FastImagePull is SOCI parallel pull, with the numbers that `bottlerocket` sets
#: (``nodeadm/internal/containerd/snapshotter/soci-snapshotter.config.toml``). nodeadm replaces the list of
#: limits as a whole, so it repeats nodeadm's own limit of open files
#: (``nodeadm/internal/containerd/base-runtime-spec.json``).
_NODE_CONFIG = f"""\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
  containerd:
    baseRuntimeSpec:
      process:
        rlimits:
        - {{type: RLIMIT_NOFILE, soft: 65536, hard: 1048576}}
        - {{type: RLIMIT_MEMLOCK, soft: {_LOCKED_MEMORY_BYTES}, hard: {_LOCKED_MEMORY_BYTES}}}
"""

#: EFA's installer, which the image's build runs, can reserve huge pages (its package efa-config;
#: awslabs/libfabric-ci-scripts#122). No pod of this library requests them, and Karpenter counts their memory
#: as free. cloud-init runs the script before nodeadm starts kubelet
#: (``templates/al2023/runtime/rootfs/etc/systemd/system/nodeadm-run.service``), so kubelet sees none.
_SCRIPT = """\
#!/bin/bash
set -o errexit
echo "vm.nr_hugepages = 0" > /etc/sysctl.d/99-inference-blueprints.conf
sysctl --load /etc/sysctl.d/99-inference-blueprints.conf
"""


def user_data() -> str:
    """Return the user data of nodes: a MIME document, to which Karpenter adds its own NodeConfig."""
    parts = {"application/node.eks.aws": _NODE_CONFIG, 'text/x-shellscript; charset="us-ascii"': _SCRIPT}
    lines = ["MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="//"', ""]
    for content_type, content in parts.items():
        lines += ["--//", f"Content-Type: {content_type}", "", content]
    return "\n".join([*lines, "--//--", ""])


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
