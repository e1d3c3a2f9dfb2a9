"""In which order a deployment makes an upgrade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.deployment.upgrade.proposal import Proposal
from inference_blueprints.spec.lock.differences import HELD_POOL, Change


def steps(proposal: Proposal) -> list[str]:
    """Return what `deploy` does, a line each, in its order; what does not change is left out."""
    return list(_steps(proposal, proposal.changes))


def _steps(proposal: Proposal, changes: Sequence[Change]) -> Iterator[str]:
    is_new_minor = proposal.new_version != proposal.old_version
    if is_new_minor:
        yield f"control plane: {proposal.old_version} to {proposal.new_version}"
    add_ons = _parts(changes, "add-on ")
    if add_ons:
        yield f"EKS add-ons: {', '.join(add_ons)}"
    if is_new_minor:
        yield f"system nodes: to {proposal.new_version}, one after the other"
    charts = _parts(changes, "chart ")
    if charts:
        yield f"controllers, in this order: {', '.join(charts)}"
    yield from _pool_steps(proposal, changes, is_new_minor=is_new_minor)
    engines = _parts(changes, "engine ")
    if engines:
        yield f"models: new workers with {', '.join(engines)}, as each model's rollout says"


def _pool_steps(proposal: Proposal, changes: Sequence[Change], *, is_new_minor: bool) -> Iterator[str]:
    """Yield whose nodes are replaced, and what is left for later."""
    held = proposal.new.held_pools
    released = {
        change.part.removeprefix(HELD_POOL) for change in changes if change.part.startswith(HELD_POOL)
    }
    all_change = is_new_minor or bool(_parts(changes, "Bottlerocket"))
    following = [name for name in proposal.pools if all_change or name in released]
    if following:
        yield (
            f"nodes of {', '.join(following)}: Karpenter replaces them, in each pool one at a time "
            "and within the models' disruption budgets"
        )
    if held:
        images = ", ".join(f"{name} ({image.kubernetes})" for name, image in held.items())
        yield (
            f"held: {images}; when the others are new and well: "
            f"blueprints upgrade {proposal.path} --pools NAME,... --apply, and deploy again"
        )


def _parts(changes: Sequence[Change], prefix: str) -> list[str]:
    """Return the names of what changes its version, without what is only pinned now."""
    return [
        change.part.removeprefix(prefix)
        for change in changes
        if change.part.startswith(prefix) and not change.part.endswith(", digest") and change.old
    ]
