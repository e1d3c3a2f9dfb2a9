"""What moves KV cache from prefill to decode workers, and what NIXL says of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue, KvTransfer, Port

#: Where NIXL's own telemetry is read. By default it takes 9090, which is that of Dynamo's worker.
NIXL_METRICS = Port("nixl-metrics", 19090)
#: NIXL's exporter for Prometheus (``docs/telemetry.md`` and ``src/plugins/telemetry/prometheus`` of
#: ai-dynamo/nixl). Of a worker's processes one binds the port and speaks for itself. From NIXL 1.5 on the
#: others go on without; in 1.3 and 1.4 they end with an error, so it is only for engines that bring 1.5.
NIXL_TELEMETRY: Mapping[str, EnvironmentValue] = MappingProxyType(
    {
        "NIXL_TELEMETRY_ENABLE": "y",
        "NIXL_TELEMETRY_EXPORTER": "prometheus",
        "NIXL_TELEMETRY_PROMETHEUS_PORT": str(NIXL_METRICS.number),
    }
)


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


def telemetry_ports(environment: Mapping[str, EnvironmentValue]) -> tuple[Port, ...]:
    """Return where a worker tells of its transfers: nowhere, or on one port.

    Parameters
    ----------
    environment
        The worker's.
    """
    return (NIXL_METRICS,) if NIXL_TELEMETRY.items() <= environment.items() else ()
