"""vLLM: how a worker is sized and which arguments it gets.

Flags and defaults are those of the release that the catalogue pins (``vllm/engine/arg_utils.py``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from inference_blueprints.catalog import KV_CACHE_BYTES
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.kv_transfer import kv_transfer
from inference_blueprints.serving.memory import MemoryEstimate, estimate_memory
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue, KvTransfer
from inference_blueprints.serving.weights import streamed_address, weights_environment
from inference_blueprints.serving.workload import longest_request_tokens, unique_tokens
from inference_blueprints.spec.types import ArgumentValue

_ONE_NODE = "a worker is one node's tensorParallelSize accelerators"
_TOPOLOGY = "name the deployment's topology, aggregated or disaggregated"
_DISCOVERY = "Dynamo's operator does"
OWNED_ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "model": "set weights.huggingFace or weights.s3",
        "revision": "set weights.revision",
        "hf-token": "set weights.tokenSecretArn",
        "load-format": "set weights.s3 for weights that are streamed",
        "model-loader-extra-config": "set weights.s3 for weights that are streamed",
        "served-model-name": "set the model's name",
        "tensor-parallel-size": "set tensorParallelSize of the deployment",
        "pipeline-parallel-size": _ONE_NODE,
        "data-parallel-size": _ONE_NODE,
        "kv-events-config": "set routing: {kvAware: {}}",
        "disaggregation-mode": _TOPOLOGY,
        "kv-transfer-config": _TOPOLOGY,
        "discovery-backend": _DISCOVERY,
        "namespace": _DISCOVERY,
        "endpoint": _DISCOVERY,
        "config": "write its arguments here",
    }
)

# Dynamo's router and vLLM hash blocks of this many tokens; FlashMLA accepts no other size.
_BLOCK_SIZE = 64
# A little below vLLM's 0.92: what the memory estimate reserves is an allowance, not a measurement.
_GPU_MEMORY_UTILIZATION = 0.9
# vLLM's own choice for an API server by GiB of device memory; it leaves A100 at the lowest (vllm#17885).
_BATCHED_TOKENS = ((160, 16384), (70, 8192), (0, 2048))
_FEWEST_SEQUENCES, _MOST_SEQUENCES = 8, 256
# vLLM binds where the host is "*"; Dynamo's publisher in the same pod connects to it on loopback.
_KV_EVENTS = {
    "publisher": "zmq",
    "topic": "kv-events",
    "endpoint": "tcp://*:20080",
    "enable_kv_cache_events": True,
}
# Both roles send and receive: a decode worker may give its blocks back to a prefill worker's next turn.
_NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
_KV_TRANSFER: Mapping[KvTransfer, Mapping[str, object]] = MappingProxyType(
    {
        "libfabric": {**_NIXL, "kv_connector_extra_config": {"backends": ["LIBFABRIC"]}},
        # Without RDMA, device memory cannot be registered: blocks go through the host's.
        "ucx": {**_NIXL, "kv_buffer_device": "cpu"},
    }
)
_COUNTS = frozenset({"max-model-len", "max-num-seqs", "max-num-batched-tokens", "block-size"})
# Each device reads its own part; the limit bounds the host memory that holds what is on its way.
_STREAMER = {"concurrency": 16, "distributed": True, "memory_limit": 4 * 1024**3}

_Number = TypeVar("_Number", int, float)


def user_arguments(resolved: ResolvedWorkers) -> Mapping[str, ArgumentValue]:
    """Return the engine arguments that the blueprint gives, by name without dashes."""
    section = resolved.model.engine.vllm
    return section.args if section else {}


def value_message(name: str, value: ArgumentValue) -> str | None:
    """Return what is wrong with the value of an argument that the plan computes with; None when nothing is.

    Parameters
    ----------
    name
        Argument without dashes.
    value
        What the user gave; not a boolean.
    """
    if name == "kv-cache-dtype" and value not in KV_CACHE_BYTES:
        return f"got {value!r}, allowed are {', '.join(KV_CACHE_BYTES)}"
    if name in _COUNTS and not (isinstance(value, int) and value > 0):
        return f"got {value!r}, must be a whole number above 0"
    if name == "gpu-memory-utilization" and not (isinstance(value, int | float) and 0 < value <= 1):
        return f"got {value!r}, must be a number above 0 and at most 1"
    return None


def insisted_length(resolved: ResolvedWorkers) -> int | None:
    """Return the longest request that the user asks for by argument; None without."""
    value = user_arguments(resolved).get("max-model-len")
    return None if value is None else int(value)


def memory(resolved: ResolvedWorkers) -> MemoryEstimate:
    """Return how a worker's accelerator memory is spent.

    Parameters
    ----------
    resolved
        The deployment.
    """
    arguments = user_arguments(resolved)
    return estimate_memory(
        resolved.shape,
        resolved.accelerator,
        resolved.tensor_parallel_size,
        insisted_length(resolved) or _wanted_length(resolved),
        _max_num_batched_tokens(resolved),
        gpu_memory_utilization=_number(arguments, "gpu-memory-utilization", _GPU_MEMORY_UTILIZATION),
        kv_cache_dtype=str(arguments.get("kv-cache-dtype", "auto")),
    )


def size(resolved: ResolvedWorkers) -> Sizing:
    """Return lengths, batch sizes and KV cache of a worker.

    The longest request is that of the workload with its tail, within the model's context and the KV cache.
    As many sequences run at once as KV cache holds mean requests, rounded down to a power of two: more would
    only preempt each other. What the user sets is taken as it is.

    Parameters
    ----------
    resolved
        The deployment.
    """
    arguments = user_arguments(resolved)
    block_size = _number(arguments, "block-size", _BLOCK_SIZE)
    kv_tokens = memory(resolved).kv_tokens // block_size * block_size
    max_num_batched_tokens = _max_num_batched_tokens(resolved)
    sequences = min(kv_tokens / unique_tokens(resolved.model.workload), max_num_batched_tokens)
    return Sizing(
        block_size=block_size,
        max_model_len=insisted_length(resolved) or min(_wanted_length(resolved), kv_tokens),
        max_num_seqs=_number(arguments, "max-num-seqs", _power_of_two(sequences)),
        max_num_batched_tokens=max_num_batched_tokens,
        gpu_memory_utilization=_number(arguments, "gpu-memory-utilization", _GPU_MEMORY_UTILIZATION),
        kv_tokens=kv_tokens,
    )


def arguments(resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, ArgumentValue]:
    """Return a worker's arguments by name without dashes, the user's merged in.

    Parameters
    ----------
    resolved
        The deployment.
    sizing
        The figures from `size`.
    """
    weights = resolved.model.weights
    streamed = streamed_address(weights)
    planned: dict[str, ArgumentValue] = {"model": streamed or weights.hugging_face or ""}
    planned["served-model-name"] = resolved.model.name
    if weights.revision and not streamed:
        planned["revision"] = weights.revision
    if streamed:
        planned["load-format"] = "runai_streamer"
        planned["model-loader-extra-config"] = _json(_STREAMER)
    planned |= {
        "tensor-parallel-size": resolved.tensor_parallel_size,
        "block-size": sizing.block_size,
        "max-model-len": sizing.max_model_len,
        "max-num-seqs": sizing.max_num_seqs,
        "max-num-batched-tokens": sizing.max_num_batched_tokens,
        "gpu-memory-utilization": sizing.gpu_memory_utilization,
        "enable-prefix-caching": True,
    }
    transfer = kv_transfer(resolved)
    if transfer:
        planned["disaggregation-mode"] = resolved.role
        planned["kv-transfer-config"] = _json(_KV_TRANSFER[transfer])
    # What a decode worker holds came from a prefill worker, by whose cache requests are routed.
    if resolved.model.routing.chosen == "kvAware" and resolved.role != "decode":
        planned["kv-events-config"] = _json(_KV_EVENTS)
    return planned | dict(user_arguments(resolved))


def environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return a worker's environment as far as it is the engine's business.

    Parameters
    ----------
    resolved
        The deployment.
    """
    return {"VLLM_NO_USAGE_STATS": "1", **weights_environment(resolved.model.weights)}


def _wanted_length(resolved: ResolvedWorkers) -> int:
    """Return the longest request of the workload that the model's context allows."""
    return min(longest_request_tokens(resolved.model.workload), resolved.shape.context_length)


def _max_num_batched_tokens(resolved: ResolvedWorkers) -> int:
    """Return the tokens of one step: the user's, else vLLM's choice by the size of the device."""
    gib = 0 if resolved.accelerator.name.startswith("a100") else resolved.accelerator.memory_bytes / 1024**3
    default = next(tokens for least, tokens in _BATCHED_TOKENS if gib >= least)
    return _number(user_arguments(resolved), "max-num-batched-tokens", default)


def _number(arguments: Mapping[str, ArgumentValue], name: str, default: _Number) -> _Number:
    """Return a number that the user gave, or the default."""
    value = arguments.get(name, default)
    return type(default)(value)


def _power_of_two(sequences: float) -> int:
    """Round down to a power of two within the bounds."""
    bounded = min(float(_MOST_SEQUENCES), max(float(_FEWEST_SEQUENCES), sequences))
    return 1 << int(math.log2(bounded))


def _json(value: Mapping[str, object]) -> str:
    """Render a JSON argument, the same each time."""
    return json.dumps(value, separators=(",", ":"))
