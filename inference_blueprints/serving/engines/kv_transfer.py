"""The NIXL back end that moves KV cache from prefill to decode workers, and its telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue, KvTransfer, Port
from inference_blueprints.spec.invalid_values import usable

#: Port of NIXL's own telemetry. NIXL's default of 9090 is the port of Dynamo's worker.
NIXL_METRICS = Port("nixl-metrics", 19090)
NIXL_PORT_VARIABLE = "NIXL_TELEMETRY_PROMETHEUS_PORT"
#: NIXL's Prometheus exporter (``docs/telemetry.md`` and ``src/plugins/telemetry/prometheus`` of
#: ai-dynamo/nixl). One process of a worker binds the port and reports only itself. From NIXL 1.5 on, the
#: other processes continue without it. In 1.3 and 1.4 they end with an error, so only engines with 1.5 use
#: it.
NIXL_TELEMETRY: Mapping[str, EnvironmentValue] = MappingProxyType(
    {
        "NIXL_TELEMETRY_ENABLE": "y",
        "NIXL_TELEMETRY_EXPORTER": "prometheus",
        NIXL_PORT_VARIABLE: str(NIXL_METRICS.number),
    }
)


def kv_transfer(resolved: ResolvedWorkers) -> KvTransfer | None:
    """Return NIXL's back end for a deployment: EFA if the pools of both roles have it, else TCP.

    resolved: The workers of any role of the deployment.
    Returns: None if the deployment is aggregated.
    """
    if resolved.role == "aggregated":
        return None
    with_efa = {pool.name for _, pool in usable(resolved.blueprint.spec.pools) if pool.efa}
    both = all(workers.pool in with_efa for workers in resolved.deployment.workers.values())
    return "libfabric" if both else "ucx"


def telemetry_ports(environment: Mapping[str, EnvironmentValue]) -> tuple[Port, ...]:
    """Return the port of a worker's transfer telemetry; empty if it has none."""
    return (NIXL_METRICS,) if NIXL_TELEMETRY.items() <= environment.items() else ()
