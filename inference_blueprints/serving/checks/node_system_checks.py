"""Checks that an operating system has what each pool needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.serving.node_systems import paired_workers, pool_system, unbootable_families
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.wording import listing
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Finding


def node_system_findings(blueprint: spec.Blueprint) -> Iterator[Finding]:
    """Check the pools.

    Parameters
    ----------
    blueprint
        A blueprint with valid types. Its references may be invalid.

    Yields
    ------
    Finding
        An error for each pool whose needs no operating system meets.
    """
    workers: dict[str, list[str]] = {}
    for each in paired_workers(blueprint):
        workers.setdefault(each.pool.name, []).append(f"{each.model.name}/{each.label}")
    for index, pool in usable(blueprint.spec.pools):
        if pool_system(pool, paired=pool.name in workers):
            continue
        reason, remedy = _reason(pool, workers.get(pool.name, []))
        message = f"got 'ebsSnapshot', and {reason}, and AL2023 cannot start from a snapshot; {remedy}"
        yield Finding(("spec", "pools", index, "imageAcceleration"), message)


def _reason(pool: spec.Pool, paired: Sequence[str]) -> tuple[str, str]:
    """Return why a pool needs AL2023, and what to change."""
    families = unbootable_families(pool, shipped().bottlerocket)
    if families:
        report = shipped().bottlerocket.unbootable_families[families[0]]
        return (
            f"instance types of {listing(families)} do not boot Bottlerocket's image ({report}); they need "
            "AL2023",
            "set 'sociParallelPull: {}', or use another family",
        )
    return (
        f"the workers {listing(paired)} move KV cache over EFA on a part of a node; they need AL2023, which "
        "gives a pod the EFA interfaces beside its GPUs",
        "set 'sociParallelPull: {}', or give each worker all GPUs of a node",
    )
