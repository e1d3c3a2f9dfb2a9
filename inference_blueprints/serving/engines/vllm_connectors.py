"""vLLM's KV cache connectors: between prefill and decode workers, and to the memory of the node.

Both are parts of ``--kv-transfer-config``. ``MultiConnector`` combines two of them: the first child that
finds tokens loads them, and all children store (``vllm/distributed/kv_transfer/kv_connector/v1`` of vLLM
0.31.0). Dynamo finds NIXL among the children (``dynamo/vllm/kv_connector_protocols.py`` of 1.6.1).

``kv_role`` says whether a connector sends (``kv_producer``), receives (``kv_consumer``) or does both. The
connector to the node's memory does both: vLLM itself sets ``kv_both`` for it and for LMCache
(``_post_init_kv_transfer_config`` in ``vllm/config/vllm.py``). So does ``MultiConnector`` with it as a child,
because the scheduler reads the role of the whole: blocks that a child may load into are freed only after the
step that still writes to them (``defer_block_free`` in ``vllm/v1/core/sched/scheduler.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints.serving.engines.kv_transfer import kv_transfer
from inference_blueprints.serving.engines.lmcache import lmcache_connector, uses_lmcache
from inference_blueprints.serving.estimates.host_cache import host_cache_mib
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import KvTransfer
from inference_contracts.units import MIB

# Blocks that cannot be loaded are computed again, and ``vllm:nixl_num_failed_transfers`` counts them. By
# vLLM's default the request fails, which a client of Dynamo sees as status 500.
_RECOMPUTE: Mapping[str, str] = MappingProxyType({"kv_load_failure_policy": "recompute"})
# ``kv_both`` is deprecated for NIXL (``kv_connector/v1/nixl/connector.py`` of vLLM 0.31.0). A decode worker
# would return blocks for the next turn of a prefill worker only with ``bidirectional_kv_xfer``, which is off
# by default (``nixl/base_scheduler.py``) and which neither Dynamo's nor llm-d's router uses.
_NIXL_ROLES: Mapping[WorkerRole, str] = MappingProxyType({"prefill": "kv_producer", "decode": "kv_consumer"})
_NIXL_BACK_ENDS: Mapping[KvTransfer, Mapping[str, object]] = MappingProxyType(
    {
        "libfabric": {"kv_connector_extra_config": {"backends": ["LIBFABRIC"]}},
        # Without RDMA, device memory cannot be registered, so blocks go through the host's memory.
        "ucx": {"kv_buffer_device": "cpu"},
    }
)


def connectors(resolved: ResolvedWorkers, block_size: int) -> Mapping[str, object] | None:
    """Return the value of ``--kv-transfer-config``; None if KV cache stays on the accelerators.

    block_size: Tokens of a block of the KV cache.
    """
    each = tuple(_connectors(resolved, block_size))
    if not each:
        return None
    [first, *others] = each
    extra = {"connectors": each}
    multi = {"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}
    whole = multi if others else first
    return {**whole, **_RECOMPUTE}


def _connectors(resolved: ResolvedWorkers, block_size: int) -> Iterator[Mapping[str, object]]:
    """Yield the connector between the roles, and the one to the memory of the node and further tiers."""
    transfer = kv_transfer(resolved)
    if transfer:
        role = _NIXL_ROLES[resolved.role]
        yield {"kv_connector": "NixlConnector", "kv_role": role, **_NIXL_BACK_ENDS[transfer]}
    cache = host_cache_mib(resolved)
    if uses_lmcache(resolved):
        yield lmcache_connector(resolved, block_size)
    elif cache:
        # The events carry token ids, so the router learns which blocks are kept here.
        extra = {"cpu_bytes_to_use": cache * MIB, "self_describing_kv_events": True}
        yield {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": extra,
        }
