"""The steps of an upgrade, in the order of the deployment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.operate.upgrade.proposal import Proposal
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.lock.differences import HELD_POOL, Change
from inference_catalog.catalogue import shipped


def steps(proposal: Proposal) -> list[str]:
    """Return the steps of `deploy`, one line each, without parts that do not change."""
    return list(_steps(proposal, proposal.changes))


def _steps(proposal: Proposal, changes: Sequence[Change]) -> Iterator[str]:
    is_new_minor = proposal.new_version != proposal.old_version
    if is_new_minor:
        yield f"control plane: {proposal.old_version} to {proposal.new_version}"
    add_ons = _parts(changes, "add-on ")
    if add_ons:
        yield f"EKS add-ons: {', '.join(add_ons)}"
    if is_new_minor:
        yield f"system nodes: to {proposal.new_version}, one by one"
    charts = _parts(changes, "chart ")
    if charts:
        yield f"controllers, in this order: {', '.join(charts)}"
    yield from _pool_steps(proposal, changes, is_new_minor=is_new_minor)
    engines = _parts(changes, "engine ")
    if engines:
        yield f"models: new workers with {', '.join(engines)}, according to each model's rollout"


def _pool_steps(proposal: Proposal, changes: Sequence[Change], *, is_new_minor: bool) -> Iterator[str]:
    """Yield the pools whose nodes are replaced, and the pools that are held."""
    held = proposal.new.held_pools
    released = {
        change.part.removeprefix(HELD_POOL) for change in changes if change.part.startswith(HELD_POOL)
    }
    changed = {
        system.name for system in shipped().operating_systems.values() if _parts(changes, system.ami_family)
    }
    systems = build_plan(proposal.blueprint).node_systems
    following = [
        name for name in proposal.pools if is_new_minor or systems[name] in changed or name in released
    ]
    if following:
        yield (
            f"nodes of {', '.join(following)}: Karpenter replaces them, one at a time per pool "
            "and within the models' disruption budgets"
        )
    if held:
        images = ", ".join(f"{name} ({image.kubernetes})" for name, image in held.items())
        yield (
            f"held: {images}; when the other nodes are upgraded and healthy, run "
            f"blueprints upgrade {proposal.path} --pools NAME,... --apply, and deploy again"
        )


def _parts(changes: Sequence[Change], prefix: str) -> list[str]:
    """Return the names of components whose version changes, without those that are only newly pinned."""
    return [
        change.part.removeprefix(prefix)
        for change in changes
        if change.part.startswith(prefix) and not change.part.endswith(", digest") and change.old
    ]
