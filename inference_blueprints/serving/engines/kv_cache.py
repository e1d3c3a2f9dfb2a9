"""KV cache outside one worker's accelerators: its events, its transfer by NIXL, and LMCache."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.serving.estimates.cache_tiers import BUCKET_REFERENCE, host_cache_mib, shared_cache
from inference_blueprints.serving.estimates.disk import nvme_cache_mib
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnginePort, EnvironmentValue, KvTransfer, Port
from inference_blueprints.spec.invalid_values import usable
from inference_contracts.units import MIB_PER_GIB

_EVENTS_PORT = 20080
#: Settings of the publisher. Engines bind to every address if the host is "*". Dynamo's publisher in the same
#: pod connects over loopback.
KV_EVENTS: Mapping[str, str] = MappingProxyType(
    {"publisher": "zmq", "topic": "kv-events", "endpoint": f"tcp://*:{_EVENTS_PORT}"}
)


def publisher_settings(name: str, port: int) -> dict[str, str | bool]:
    """Return the settings of a worker that publishes its cache events.

    name: Name under which subscribers find them.
    port: Port of the publisher.
    """
    return {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": f"tcp://*:{port}",
        "topic": name,
    }


def event_ports(resolved: ResolvedWorkers) -> tuple[EnginePort, ...]:
    """Return the ports of the publishers, one per data parallel rank (vLLM: ``offset_endpoint_port``)."""
    if not resolved.publishes_kv_events:
        return ()
    ranks = resolved.data_parallel_size
    return (EnginePort("kv-events", _EVENTS_PORT, argument="kv-events-config", count=ranks),)


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


# LMCache: moves KV cache from the accelerators to the node's memory, and from there to further tiers.
#
# It runs as a separate process beside vLLM, in the same container (``lmcache.mp.autostart``), because it
# copies from the accelerators itself and only the engine's container has them. Its tiers: ``l1`` is the
# node's memory. Each ``l2-adapter`` is a further tier with copies of everything that was in ``l1``; blocks
# found there return through ``l1``. (LMCache 0.5.6: ``lmcache/integration/vllm/mp_server_launcher.py``,
# ``lmcache/v1/multiprocess/config.py``, ``lmcache/v1/distributed/config.py`` and ``l2_adapters`` beside it.)

# Both on loopback. The first is LMCache's default.
_PORT, _HTTP_PORT = 5555, 5556
#: Where a worker sets them.
PORTS = (
    EnginePort("lmcache", _PORT, argument="kv-transfer-config"),
    EnginePort("lmcache-http", _HTTP_PORT, argument="kv-transfer-config"),
)
# Before it answers, the server pins its initial memory, at most 20 GB.
_START_SECONDS = 300
# Path below the directory that is mounted for caches.
_NVME_DIRECTORY = "/cache/kv"
# LMCache's default. It is large, because S3 bills each object written and read.
_SHARED_CHUNK_TOKENS = 256
# When a tier is filled to this share, the least recently used blocks are evicted
# (``--eviction-trigger-watermark`` and ``trigger_watermark``, LMCache's default).
_FILLED = 0.8
#: Environment of a worker. It disables LMCache's usage reports to its authors, which are on by default.
ENVIRONMENT: Mapping[str, str] = MappingProxyType({"LMCACHE_TRACK_USAGE": "false"})


def uses_lmcache(resolved: ResolvedWorkers) -> bool:
    """Return whether KV cache has tiers beyond the node's memory, for which vLLM alone has no size limit."""
    return bool(nvme_cache_mib(resolved) or shared_cache(resolved))


def filled_part(resolved: ResolvedWorkers) -> float:
    """Return the share of the memory and disk for KV cache that is filled."""
    return _FILLED if uses_lmcache(resolved) else 1


def lmcache_connector(resolved: ResolvedWorkers, block_size: int) -> Mapping[str, object]:
    """Return vLLM's connector to LMCache, including the server that it starts.

    block_size: Tokens of a block of the KV cache.
    """
    return {
        "kv_connector": "LMCacheMPConnector",
        "kv_connector_module_path": "lmcache.integration.vllm.lmcache_mp_connector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {
            "lmcache.mp.host": "tcp://127.0.0.1",
            "lmcache.mp.port": _PORT,
            "lmcache.mp.autostart": True,
            "lmcache.mp.autostart.wait_timeout": _START_SECONDS,
            "lmcache.mp.autostart.server_args": shlex.join(_server_arguments(resolved, block_size)),
        },
    }


def _server_arguments(resolved: ResolvedWorkers, block_size: int) -> Iterator[str]:
    """Yield the command line of ``lmcache server`` after the addresses, which the connector sets."""
    arguments = {
        "http-port": _HTTP_PORT,
        "chunk-size": chunk_tokens(resolved, block_size),
        "max-workers": resolved.tensor_parallel_size,
        "l1-size-gb": host_cache_mib(resolved) // MIB_PER_GIB,
        "eviction-policy": "LRU",
    }
    for name, value in arguments.items():
        yield from (f"--{name}", str(value))
    for adapter in _adapters(resolved):
        yield from ("--l2-adapter", json.dumps(adapter, separators=(",", ":")))


def chunk_tokens(resolved: ResolvedWorkers, block_size: int) -> int:
    """Return the tokens per LMCache chunk: the router's block size, so that events name its blocks.

    Chunks are larger in a store that bills each object. Events of such chunks are useless to the router.

    block_size: Tokens of a block of the KV cache.
    """
    if not shared_cache(resolved):
        return block_size
    return -(-_SHARED_CHUNK_TOKENS // block_size) * block_size


def _adapters(resolved: ResolvedWorkers) -> Iterator[Mapping[str, object]]:
    """Yield the tiers behind the node's memory, nearest first."""
    nvme = nvme_cache_mib(resolved)
    if nvme:
        yield {
            "type": "fs_native",
            "base_path": _NVME_DIRECTORY,
            # Bypass the page cache, which counts towards the pod's memory.
            "use_odirect": True,
            "max_capacity_gb": nvme // MIB_PER_GIB,
            # Without this setting nothing is ever deleted.
            "eviction": {"eviction_policy": "LRU"},
        }
    if shared_cache(resolved):
        region = resolved.blueprint.spec.environment.region
        yield {
            "type": "s3",
            # Addressed only by host name. S3 itself deletes expired objects.
            "s3_endpoint": f"{BUCKET_REFERENCE}.s3.{region}.amazonaws.com",
            "s3_region": region,
        }
