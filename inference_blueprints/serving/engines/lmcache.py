"""LMCache: KV cache that goes from the accelerators to the node's memory, and from there to further tiers.

It runs as a process of its own beside vLLM, in the same container (``lmcache.mp.autostart``): it copies from
the accelerators itself, which only the engine's container has. Its tiers: ``l1`` is the node's memory, each
``l2-adapter`` lies behind it and has copies of all that was in ``l1``; what is found there returns by it.
(LMCache 0.5.6: ``lmcache/integration/vllm/mp_server_launcher.py``, ``lmcache/v1/multiprocess/config.py``,
``lmcache/v1/distributed/config.py`` and ``l2_adapters`` beside it.)
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.serving.disk import nvme_cache_mib
from inference_blueprints.serving.host_cache import host_cache_mib
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.shared_cache import BUCKET_REFERENCE, shared_cache

_MIB_PER_GIB = 1024
# Both on loopback; the first is LMCache's own choice.
_PORT, _HTTP_PORT = 5555, 5556
# The server pins the memory that it starts with, at most 20 GB, before it answers.
_START_SECONDS = 300
# Below the directory that is mounted for caches.
_NVME_DIRECTORY = "/cache/kv"
# S3 bills each object that is put and asked for; LMCache's own choice.
_SHARED_CHUNK_TOKENS = 256
# A tier is filled to this part before the least recently used gives way (``--eviction-trigger-watermark`` and
# ``trigger_watermark``, LMCache's own choice).
_FILLED = 0.8
#: What a worker's environment says: nothing is reported to LMCache's authors, which is its default.
ENVIRONMENT: Mapping[str, str] = MappingProxyType({"LMCACHE_TRACK_USAGE": "false"})


def uses_lmcache(resolved: ResolvedWorkers) -> bool:
    """Return whether KV cache goes further than the node's memory, which vLLM alone does not bound.

    Parameters
    ----------
    resolved
        The workers.
    """
    return bool(nvme_cache_mib(resolved) or shared_cache(resolved))


def filled_part(resolved: ResolvedWorkers) -> float:
    """Return how much of the memory and disk for KV cache holds some.

    Parameters
    ----------
    resolved
        The workers.
    """
    return _FILLED if uses_lmcache(resolved) else 1


def lmcache_connector(resolved: ResolvedWorkers, block_size: int) -> Mapping[str, object]:
    """Return vLLM's connector to LMCache, with the server that it starts.

    Parameters
    ----------
    resolved
        The workers.
    block_size
        Tokens of a block of the KV cache.
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
    """Yield the command line of ``lmcache server`` behind the addresses, which the connector sets."""
    arguments = {
        "http-port": _HTTP_PORT,
        "chunk-size": chunk_tokens(resolved, block_size),
        "max-workers": resolved.tensor_parallel_size,
        "l1-size-gb": host_cache_mib(resolved) // _MIB_PER_GIB,
        "eviction-policy": "LRU",
    }
    for name, value in arguments.items():
        yield from (f"--{name}", str(value))
    for adapter in _adapters(resolved):
        yield from ("--l2-adapter", json.dumps(adapter, separators=(",", ":")))


def chunk_tokens(resolved: ResolvedWorkers, block_size: int) -> int:
    """Return the tokens that LMCache keeps as one: the router's blocks, so that its events are of these.

    Larger in a store that bills each object, of which events are none that the router knows.

    Parameters
    ----------
    resolved
        The workers.
    block_size
        Tokens of a block of the KV cache.
    """
    if not shared_cache(resolved):
        return block_size
    return -(-_SHARED_CHUNK_TOKENS // block_size) * block_size


def _adapters(resolved: ResolvedWorkers) -> Iterator[Mapping[str, object]]:
    """Yield what lies behind the node's memory, the nearest first."""
    nvme = nvme_cache_mib(resolved)
    if nvme:
        yield {
            "type": "fs_native",
            "base_path": _NVME_DIRECTORY,
            # Past the page cache, which is the pod's memory too.
            "use_odirect": True,
            "max_capacity_gb": nvme // _MIB_PER_GIB,
            # Without this block nothing is ever deleted.
            "eviction": {"eviction_policy": "LRU"},
        }
    if shared_cache(resolved):
        region = resolved.blueprint.spec.environment.region
        yield {
            "type": "s3",
            # Addressed by host name alone; S3 itself deletes what has expired.
            "s3_endpoint": f"{BUCKET_REFERENCE}.s3.{region}.amazonaws.com",
            "s3_region": region,
        }
