"""The Systems Manager parameters in which AWS publishes the images of nodes."""

from __future__ import annotations

from inference_catalog.operating_system import SystemName
from inference_catalog.releases import NodeImage

#: Device resource of GPUs that need a separate node image with their driver.
NVIDIA_RESOURCE = "nvidia.com/gpu"
#: Resource that pods request for a Neuron device.
NEURON_RESOURCE = "aws.amazon.com/neuron"


def image_parameter(image: NodeImage, system: SystemName, architecture: str, *, nvidia: bool) -> str:
    """Return the parameter that contains the ID of an image.

    Karpenter's alias would follow the version of the control plane. The parameter contains the Kubernetes
    version, so nodes change only when their pool does. The alias resolves to the same parameters
    (pkg/providers/amifamily/bottlerocket.go and al2023.go in Karpenter).

    Parameters
    ----------
    image
        Version of Kubernetes and releases of the operating systems.
    architecture
        ``amd64`` or ``arm64``.
    nvidia
        Whether the nodes have NVIDIA GPUs. Their variant includes the drivers. AL2023 is used only for them.
    """
    machine = "x86_64" if architecture == "amd64" else architecture
    if system == "al2023":
        variant = f"/aws/service/eks/optimized-ami/{image.kubernetes}/amazon-linux-2023/{machine}/nvidia"
        return f"{variant}/amazon-eks-node-al2023-{machine}-nvidia-{image.kubernetes}-{image.al2023}/image_id"
    variant = f"aws-k8s-{image.kubernetes}{'-nvidia' if nvidia else ''}"
    return f"/aws/service/bottlerocket/{variant}/{machine}/{image.bottlerocket.removeprefix('v')}/image_id"
