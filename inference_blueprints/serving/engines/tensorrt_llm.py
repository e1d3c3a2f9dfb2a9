"""TensorRT-LLM with its PyTorch backend: the arguments and environment of a worker.

Flags are those of ``dynamo.trtllm`` at the release that the catalogue pins. Settings without a flag are
passed as ``--trtllm.<key>``. A group of these keys replaces Dynamo's defaults for that group, so each group
is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.engines.block_sizes import tensorrt_blocks
from inference_blueprints.serving.engines.kv_cache import kv_transfer
from inference_blueprints.serving.engines.serving_engine import (
    DYNAMO_EFA_VARIANT,
    ArgumentNames,
    ServingEngine,
    TransferCounters,
)
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.node_copies import model_location, reads_node_copy
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnvironmentValue
from inference_blueprints.spec.types import ArgumentValue
from inference_catalog import Accelerator

_KV_CACHE = "trtllm.kv_cache_config"
_TRANSFER = "trtllm.cache_transceiver_config"
_MODEL = "set weights.huggingFace"
_DOWNLOADED = "weights come from the Hugging Face Hub; set weights.huggingFace"
_STEP_TOKENS = 8192


class TensorRtLlm(ServingEngine):
    """TensorRT-LLM."""

    dynamo_name = "trtllm"
    #: ``common/multimodal/image_loader.py`` of Dynamo 1.6.
    fetches_from_any_host = True
    efa_variant = DYNAMO_EFA_VARIANT
    argument_names = ArgumentNames(
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
    #: Only the worker that receives counts, and no failures (``dynamo/trtllm/metrics.py`` of ai-dynamo 1.6).
    transfer_counters = TransferCounters(moved=("trtllm_kv_transfer_bytes_sum",))
    # ``Compiler::getDefaultUserDir`` in ``cpp/tensorrt_llm/deep_gemm/compiler.cuh``.
    kernel_folders = MappingProxyType({"TRTLLM_DG_CACHE_DIR": "deep-gemm"})
    # Its own and Dynamo's default; attention on Blackwell accepts 32 and 64.
    #: ``metrics/collector.py``.
    cache_use = "trtllm_kv_cache_utilization"
    block_size = 32
    # A device joins the parts that it receives from several (``CacheFormatter`` in
    # ``cpp/tensorrt_llm/batch_manager`` requires equal types, heads and blocks, not an equal split).
    gathers_heads = True
    # The roles may have stages of their own (TensorRT-LLM documentation, "Disaggregated Serving").
    staged_transfer_roles: frozenset[WorkerRole] = frozenset({"prefill", "decode"})
    # Attention is data parallel over all devices of the tensor size or over none.
    ranks_of_one_device = True
    # It spans no nodes: Dynamo would start it on further nodes by MPI over SSH, with keys in a secret and an
    # SSH server in each pod.

    def planned_block(self, resolved: ResolvedWorkers) -> int:
        return next(iter(tensorrt_blocks(resolved.device_shape)), self.block_size)

    def step_tokens(self, accelerator: Accelerator) -> int:  # noqa: ARG002 -- a constant
        return _STEP_TOKENS

    def memory_share(self, memory: MemoryEstimate, device_bytes: int) -> float:
        """Return ``--free-gpu-memory-fraction``: the KV cache's part of the memory that is otherwise free."""
        kv_cache_bytes = max(0, memory.kv_cache_bytes)
        free_bytes = kv_cache_bytes + device_bytes - memory.total_bytes
        return kv_cache_bytes / free_bytes if free_bytes else 0.0  # weights that do not fit leave nothing

    def utilization(self, share: float, whole: MemoryEstimate) -> float:
        """Return the filled part of the device when the KV cache takes a share of the free memory."""
        return 1 - (1 - share) * max(0, whole.kv_cache_bytes) / whole.total_bytes

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, ArgumentValue]:
        weights = resolved.model.weights
        planned: dict[str, ArgumentValue] = {"model": model_location(resolved)}
        planned["served-model-name"] = resolved.model.name
        if weights.revision and not reads_node_copy(resolved):
            planned |= {"revision": weights.revision, "trtllm.revision": weights.revision}
        planned |= {
            **_parallelism(resolved),
            **self.argument_names.sizing_arguments(sizing),
            f"{_KV_CACHE}.free_gpu_memory_fraction": sizing.memory_share,
            f"{_KV_CACHE}.tokens_per_block": sizing.block_size,
            f"{_KV_CACHE}.enable_block_reuse": "true",
            "trtllm.enable_chunked_prefill": "true",
        }
        if kv_transfer(resolved):
            planned["disaggregation-mode"] = resolved.role
            # Required for Dynamo's worker to count transferred bytes (``dynamo/trtllm/metrics.py``).
            planned["publish-metrics"] = True
            planned[f"{_TRANSFER}.backend"] = "NIXL"
            # Buffers are registered once, for the longest request; growing ones fail over NIXL.
            planned[f"{_TRANSFER}.max_tokens_in_buffer"] = sizing.max_model_len
        if resolved.role == "prefill":
            # A prefill worker has no next step to prepare.
            planned["trtllm.disable_overlap_scheduler"] = "true"
        if resolved.publishes_kv_events:
            planned["publish-kv-events"] = True
        return planned

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        transfer = kv_transfer(resolved)
        back_end = {"libfabric": {"TRTLLM_NIXL_KVCACHE_BACKEND": "LIBFABRIC"}}
        return {
            "TRTLLM_NO_USAGE_STATS": "1",
            # The default level does not log which back end moves KV cache (``transferAgent.cpp``).
            **({"TLLM_LOG_LEVEL": "INFO"} if transfer else {}),
            **back_end.get(transfer or "", {}),
            **super().environment(resolved),
        }


def _parallelism(resolved: ResolvedWorkers) -> Mapping[str, ArgumentValue]:
    """Return how a worker is split; data parallel attention covers all devices of the tensor size."""
    planned: dict[str, ArgumentValue] = {"tensor-parallel-size": resolved.expert_accelerators}
    if resolved.pipeline_parallel_size > 1:
        planned["pipeline-parallel-size"] = resolved.pipeline_parallel_size
    if resolved.workers.expert_parallel:
        planned["expert-parallel-size"] = resolved.expert_accelerators
    if resolved.data_parallel_size > 1:
        planned["enable-attention-dp"] = True
    return planned
