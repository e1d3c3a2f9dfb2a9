"""TensorRT-LLM with its PyTorch backend: the arguments and environment of a worker.

Flags are those of ``dynamo.trtllm`` at the release that the catalogue pins. What it has none for goes to the
engine as ``--trtllm.<key>``; a group of such keys replaces what Dynamo would fill in, so it is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.catalog import Accelerator
from inference_blueprints.serving.engines.module import EngineWords
from inference_blueprints.serving.engines.owned import (
    DATA,
    DISCOVERY,
    EXPERTS,
    FETCHED_BY_DYNAMO,
    FILES,
    NODES,
    PIPELINE,
    TENSOR,
    TOPOLOGY,
    WRITTEN_HERE,
)
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.kv_transfer import kv_transfer
from inference_blueprints.serving.memory import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnvironmentValue
from inference_blueprints.serving.weights import weights_environment
from inference_blueprints.spec.types import ArgumentValue

_KV_CACHE = "trtllm.kv_cache_config"
_TRANSFER = "trtllm.cache_transceiver_config"
WORDS = EngineWords(
    length="max-seq-len",
    sequences="max-batch-size",
    step_tokens="max-num-tokens",
    block_size="kv-block-size",
    memory_share="free-gpu-memory-fraction",
    kv_cache_type=f"{_KV_CACHE}.dtype",
    kv_cache_types=("auto", "fp8"),
    without_prefix_cache=(f"{_KV_CACHE}.enable_block_reuse", "false"),
    stretched_context=None,
)
_MODEL = "set weights.huggingFace"
_DOWNLOADED = "weights come from the Hugging Face Hub; set weights.huggingFace"
OWNED_ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "model": _MODEL,
        "model-path": _MODEL,
        "revision": "set weights.revision",
        "trtllm.revision": "set weights.revision",
        "load-format": _DOWNLOADED,
        "model-loader-extra-config": _DOWNLOADED,
        "served-model-name": "set the model's name",
        "tensor-parallel-size": TENSOR,
        "pipeline-parallel-size": PIPELINE,
        "enable-attention-dp": DATA,
        "expert-parallel-size": EXPERTS,
        "gpus-per-node": NODES,
        "extra-engine-args": WRITTEN_HERE,
        "override-engine-args": WRITTEN_HERE,
        f"{_KV_CACHE}.tokens_per_block": "set 'kv-block-size'",
        f"{_KV_CACHE}.free_gpu_memory_fraction": "set 'free-gpu-memory-fraction'",
        "publish-kv-events": "set routing: {kvAware: {}}",
        "disaggregation-mode": TOPOLOGY,
        "trtllm.disable_overlap_scheduler": TOPOLOGY,
        f"{_TRANSFER}.backend": TOPOLOGY,
        f"{_TRANSFER}.max_tokens_in_buffer": TOPOLOGY,
        "discovery-backend": DISCOVERY,
        "namespace": DISCOVERY,
        "endpoint": DISCOVERY,
        "enable-multimodal": FETCHED_BY_DYNAMO,
        "frontend-decoding": FETCHED_BY_DYNAMO,
        "modality": FETCHED_BY_DYNAMO,
        "encode-endpoint": FETCHED_BY_DYNAMO,
        "allowed-local-media-path": FILES,
    }
)
# Its own and Dynamo's default; attention on Blackwell accepts 32 and 64.
BLOCK_SIZE = 32
STREAMS_WEIGHTS = False
# A device joins what it receives of several (``CacheFormatter`` in ``cpp/tensorrt_llm/batch_manager``, which
# asks for equal types, heads and blocks, not for an equal split).
GATHERS_HEADS = True
KV_CACHE_TIERS: frozenset[str] = frozenset()
HOST_CACHE_RESERVE_MIB = 0
# The roles may have stages of their own (TensorRT-LLM documentation, "Disaggregated Serving").
STAGES_SEND_KV: frozenset[WorkerRole] = frozenset({"prefill", "decode"})
# Dynamo starts it on further nodes by MPI over SSH, with keys in a secret and a server in each pod.
SPANS_NODES = False

_STEP_TOKENS = 8192


def step_tokens(accelerator: Accelerator) -> int:  # noqa: ARG001 -- other engines need it
    """Return the tokens of one step: TensorRT-LLM's default.

    Parameters
    ----------
    accelerator
        The device.
    """
    return _STEP_TOKENS


def memory_share(memory: MemoryEstimate, device_bytes: int) -> float:
    """Return ``--free-gpu-memory-fraction``: the KV cache's part of what all else leaves free.

    Parameters
    ----------
    memory
        How a device is filled.
    device_bytes
        The device's memory.
    """
    return max(0, memory.kv_cache_bytes) / (max(0, memory.kv_cache_bytes) + device_bytes - memory.total_bytes)


def utilization(share: float, whole: MemoryEstimate) -> float:
    """Return the part of the device that is filled where the KV cache takes a part of what is free.

    Parameters
    ----------
    share
        The argument.
    whole
        The estimate for a device that is filled to the last byte.
    """
    return 1 - (1 - share) * max(0, whole.kv_cache_bytes) / whole.total_bytes


def kept_part(resolved: ResolvedWorkers) -> float:  # noqa: ARG001 -- other engines need it
    """Return 1: the plan has it keep none.

    Parameters
    ----------
    resolved
        The workers.
    """
    return 1


def arguments(resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, ArgumentValue]:
    """Return a worker's arguments by name without dashes, the user's merged in.

    Parameters
    ----------
    resolved
        The workers.
    sizing
        Their figures.
    """
    weights = resolved.model.weights
    planned: dict[str, ArgumentValue] = {"model": weights.hugging_face or ""}
    planned["served-model-name"] = resolved.model.name
    if weights.revision:
        planned |= {"revision": weights.revision, "trtllm.revision": weights.revision}
    planned |= {
        **_parallelism(resolved),
        **WORDS.figures(sizing),
        f"{_KV_CACHE}.free_gpu_memory_fraction": sizing.memory_share,
        f"{_KV_CACHE}.tokens_per_block": sizing.block_size,
        f"{_KV_CACHE}.enable_block_reuse": "true",
        "trtllm.enable_chunked_prefill": "true",
    }
    if kv_transfer(resolved):
        planned["disaggregation-mode"] = resolved.role
        # Without it Dynamo's worker counts no transferred bytes (``dynamo/trtllm/metrics.py``).
        planned["publish-metrics"] = True
        planned[f"{_TRANSFER}.backend"] = "NIXL"
        # Buffers are registered once, for the longest request; growing ones fail over NIXL.
        planned[f"{_TRANSFER}.max_tokens_in_buffer"] = sizing.max_model_len
    if resolved.role == "prefill":
        # A worker that only computes prompts has no next step to prepare.
        planned["trtllm.disable_overlap_scheduler"] = "true"
    if resolved.publishes_kv_events:
        planned["publish-kv-events"] = True
    return planned | dict(resolved.model.engine.arguments)


def _parallelism(resolved: ResolvedWorkers) -> Mapping[str, ArgumentValue]:
    """Return how a worker is split: data parallel attention is that of all devices of its tensor size."""
    planned: dict[str, ArgumentValue] = {"tensor-parallel-size": resolved.expert_accelerators}
    if resolved.pipeline_parallel_size > 1:
        planned["pipeline-parallel-size"] = resolved.pipeline_parallel_size
    if resolved.workers.expert_parallel:
        planned["expert-parallel-size"] = resolved.expert_accelerators
    if resolved.data_parallel_size > 1:
        planned["enable-attention-dp"] = True
    return planned


def environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return a worker's environment as far as it is the engine's business.

    Parameters
    ----------
    resolved
        The workers.
    """
    transfer = kv_transfer(resolved)
    back_end = {"libfabric": {"TRTLLM_NIXL_KVCACHE_BACKEND": "LIBFABRIC"}}
    return {
        "TRTLLM_NO_USAGE_STATS": "1",
        # By default only errors are logged, and not what moves the KV cache (``transferAgent.cpp``).
        **({"TLLM_LOG_LEVEL": "INFO"} if transfer else {}),
        **back_end.get(transfer or "", {}),
        **weights_environment(resolved.model.weights),
    }
