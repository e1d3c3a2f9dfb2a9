"""LMCache: moves KV cache from the accelerators to the node's memory, and from there to further tiers.

It runs as a separate process beside vLLM, in the same container (``lmcache.mp.autostart``), because it copies
from the accelerators itself and only the engine's container has them. Its tiers: ``l1`` is the node's memory.
Each ``l2-adapter`` is a further tier with copies of everything that was in ``l1``; blocks found there return
through ``l1``. (LMCache 0.5.6: ``lmcache/integration/vllm/mp_server_launcher.py``,
``lmcache/v1/multiprocess/config.py``, ``lmcache/v1/distributed/config.py`` and ``l2_adapters`` beside it.)
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.serving.estimates.disk import nvme_cache_mib
from inference_blueprints.serving.estimates.host_cache import host_cache_mib
from inference_blueprints.serving.estimates.shared_cache import BUCKET_REFERENCE, shared_cache
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnginePort
from inference_contracts.units import MIB_PER_GIB

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
