"""What moves KV cache from prefill to decode workers."""

from __future__ import annotations

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import KvTransfer


def kv_transfer(resolved: ResolvedWorkers) -> KvTransfer | None:
    """Return NIXL's back end for a deployment: EFA where both roles' pools have it, else TCP.

    Parameters
    ----------
    resolved
        The workers of any of its roles.

    Returns
    -------
    KvTransfer or None
        None where the deployment is aggregated.
    """
    if resolved.role == "aggregated":
        return None
    with_efa = {pool.name for pool in resolved.blueprint.spec.pools if pool.efa}
    both = all(workers.pool in with_efa for workers in resolved.deployment.workers.values())
    return "libfabric" if both else "ucx"
