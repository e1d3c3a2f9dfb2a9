"""Rules on GPU health and on who repairs the nodes of a pool."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import listing, quote
from inference_contracts.errors import Finding


@rule
def health_reads_metrics(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with GPU health has observability, whose series it reads."""
    if spec.gpu_health and spec.observability is None:
        yield Finding(
            ("spec", "gpuHealth"),
            "GPU health reads the series of spec.observability; add that section, or remove this one",
        )


@rule
def repairs_have_one_owner(spec: Spec) -> Iterator[Finding]:
    """Check that Karpenter repairs all pools of a platform on EKS or none.

    Its node repair is a feature gate of the whole cluster
    (https://github.com/kubernetes-sigs/karpenter/issues/2424): on, it would also replace nodes of a pool that
    another owner repairs. On ECS there is no Karpenter, and each pool has an owner of its own.
    """
    if spec.cluster.ecs:
        return
    owners = {pool.repaired_by for _, pool in usable(spec.pools)}
    if "karpenter" not in owners or len(owners) == 1:
        return
    others = [pool.name for _, pool in usable(spec.pools) if pool.repaired_by != "karpenter"]
    for index, pool in usable(spec.pools):
        if pool.repaired_by == "karpenter":
            message = (
                "got 'karpenter', whose node repair is on for all pools or for none, so "
                f"{listing(others)} would have two owners of repairs; give every pool 'karpenter', or none"
            )
            yield Finding(("spec", "pools", index, "repairedBy"), message)


@rule
def repaired_pool_has_health(spec: Spec) -> Iterator[Finding]:
    """Check that the blueprint has GPU health if a pool names it as the owner of repairs."""
    for index, pool in usable(spec.pools):
        if pool.repaired_by == "gpuHealth" and spec.gpu_health is None:
            yield Finding(
                ("spec", "pools", index, "repairedBy"),
                f"nothing repairs {quote(pool.name)} without spec.gpuHealth; add that section, or say "
                "'karpenter'",
            )


@rule
def replacing_has_a_pool(spec: Spec) -> Iterator[Finding]:
    """Check that there is a pool whose nodes GPU health may replace."""
    if spec.gpu_health is None or spec.gpu_health.action != "replace":
        return
    if not any(pool.repaired_by == "gpuHealth" for _, pool in usable(spec.pools)):
        message = "got 'replace', and no pool has 'repairedBy: gpuHealth'; set it on pools, or say 'observe'"
        yield Finding(("spec", "gpuHealth", "action"), message)


@rule
def health_has_devices(spec: Spec) -> Iterator[Finding]:
    """Check that GPU health has accelerators to watch. Of other pools it watches the conditions of nodes."""
    if spec.gpu_health is None or not spec.pools:
        return
    types = [pool.types for _, pool in usable(spec.pools)]
    without = [known for known in types if known and not any(each.device_count for each in known)]
    if len(without) == len(spec.pools):
        message = "no pool has accelerators, so there is nothing to watch; remove this section"
        yield Finding(("spec", "gpuHealth"), message)


@rule
def repairs_fit_the_breaker(spec: Spec) -> Iterator[Finding]:
    """Check that as many nodes may be unhealthy as may be repaired: those that are repaired count."""
    health = spec.gpu_health
    if health and health.max_repairing_percent > health.max_unhealthy_percent:
        message = (
            f"got {health.max_repairing_percent}, and nothing is repaired while more than "
            f"{health.max_unhealthy_percent} % of a pool's nodes are unhealthy, which counts those; lower "
            "it, or raise 'maxUnhealthyPercent'"
        )
        yield Finding(("spec", "gpuHealth", "maxRepairingPercent"), message)


@rule
def reboots_have_an_owner(spec: Spec) -> Iterator[Finding]:
    """Check that somebody reboots: GPU health while it replaces, or Karpenter, which exists on EKS only."""
    health = spec.gpu_health
    if health is None or health.reboots_per_node_per_day == 0:
        return
    owners = {pool.repaired_by for _, pool in usable(spec.pools)}
    by_karpenter = "karpenter" in owners and not spec.cluster.ecs
    if not by_karpenter and not ("gpuHealth" in owners and health.action == "replace"):
        message = (
            f"got {health.reboots_per_node_per_day}, and nothing reboots a node; give pools 'repairedBy: "
            "gpuHealth' with 'action: replace', or remove this key"
        )
        yield Finding(("spec", "gpuHealth", "rebootsPerNodePerDay"), message)


@rule
def blocks_have_a_spare(spec: Spec) -> Iterator[Finding]:
    """Warn that a full Capacity Block gives no replacement."""
    if spec.gpu_health is None or spec.gpu_health.action != "replace":
        return
    for index, pool in usable(spec.pools):
        if pool.repaired_by == "gpuHealth" and pool.purchase.capacity_block:
            reboots = spec.gpu_health.reboots_per_node_per_day
            message = (
                f"a broken node of {quote(pool.name)} is replaced only while its Capacity Block has an "
                "unused instance; otherwise "
                + ("it is rebooted if that mends its fault, else " if reboots else "")
                + "GPU health tells people, and the node stays"
            )
            yield Finding(("spec", "pools", index, "purchase", "capacityBlock"), message, "warning")


@rule
def observed_pools_are_repaired(spec: Spec) -> Iterator[Finding]:
    """Warn that nothing replaces nodes that GPU health owns, while it only observes."""
    if spec.gpu_health is None or spec.gpu_health.action != "observe":
        return
    owned = [pool.name for _, pool in usable(spec.pools) if pool.repaired_by == "gpuHealth"]
    if owned:
        message = (
            f"got 'observe', so nobody replaces broken nodes of {listing(owned)}; say 'replace' when its "
            "decisions look right, or leave repairs to 'karpenter' while you observe"
        )
        yield Finding(("spec", "gpuHealth"), message, "warning")
