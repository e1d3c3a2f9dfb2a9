"""Checks that nodes boot the planned image: operating system, release and version of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.running_platform import RunningPlatform
from inference_blueprints.operate.verify.verified_platform import KubernetesObject
from inference_catalog import placement
from inference_catalog.operating_system import SystemName
from inference_catalog.releases import NodeImage


def node_images(running: RunningPlatform) -> Iterator[CheckResult]:
    """Compare what each node of a pool says of its system with the pool's pinned image."""
    platform = running.platform
    cluster = platform.blueprint.spec.cluster.eks
    if cluster is None:
        return
    all_nodes = running.kubectl.get("nodes")
    for pool in platform.blueprint.spec.pools:
        told = {
            node["metadata"]["name"]: _system(node)
            for node in all_nodes
            if node["metadata"].get("labels", {}).get(placement.POOL_LABEL) == pool.name
        }
        image = platform.blueprint.releases.node_image(pool.name, cluster.version)
        if told:
            yield _compared(pool.name, told, image, platform.plan.node_systems[pool.name])


def _compared(
    pool: str, told: Mapping[str, tuple[str, str]], image: NodeImage, system: SystemName
) -> CheckResult:
    """Compare the systems of a pool's nodes with the planned one."""
    planned = f"{_planned_name(image, system).strip()} and kubelet {image.kubernetes}"
    silent = [name for name, (system_name, kubelet) in told.items() if not system_name or not kubelet]
    if silent:
        message = f"pool {pool}: {', '.join(silent)} do not name their system; planned is {planned}"
        return CheckResult("node images", "unknown", message)
    others = {name: found for name, found in told.items() if not _is_planned(*found, image, system)}
    if not others:
        return CheckResult("node images", "ok", f"pool {pool}: {len(told)} nodes boot {planned}")
    names = "; ".join(f"{name} boots {found[0]} and kubelet {found[1]}" for name, found in others.items())
    message = (
        f"pool {pool}: {len(others)} of {len(told)} nodes do not boot {planned}: {names}; after a "
        "deployment, Karpenter replaces them one after another"
    )
    return CheckResult("node images", "warning", message, "kubectl get nodeclaims,nodes --output wide")


def _system(node: KubernetesObject) -> tuple[str, str]:
    """Return the name of a node's system, and the version of its kubelet; empty if it does not name them."""
    info = node.get("status", {}).get("nodeInfo", {})
    return info.get("osImage", ""), info.get("kubeletVersion", "")


def _is_planned(system_name: str, kubelet: str, image: NodeImage, system: SystemName) -> bool:
    """Whether a node's system has the planned name, and its kubelet the planned minor version."""
    return system_name.startswith(_planned_name(image, system)) and kubelet.startswith(
        f"v{image.kubernetes}."
    )


def _planned_name(image: NodeImage, system: SystemName) -> str:
    """Return the beginning of the system's name, which the kubelet reads from ``/etc/os-release``.

    Bottlerocket's contains its release, such as ``Bottlerocket OS 1.12.0 (aws-k8s-1.23)``
    (https://github.com/bottlerocket-os/bottlerocket/pull/2791); AL2023's has no release of EKS's image.
    """
    if system == "bottlerocket":
        return f"Bottlerocket OS {image.bottlerocket.removeprefix('v')} "
    return "Amazon Linux 2023"
