"""SGLang: the arguments and environment of a worker.

Flags and defaults are those of the release that the catalogue pins (``sglang/srt/arg_groups``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.catalog import Accelerator
from inference_blueprints.serving.arguments import Argument
from inference_blueprints.serving.engines.module import EngineWords
from inference_blueprints.serving.engines.owned import (
    DATA,
    DISCOVERY,
    EXPERTS,
    FETCHED_BY_DYNAMO,
    MEDIA,
    NODES,
    PIPELINE,
    REMOTE_CODE,
    TENSOR,
    TOPOLOGY,
    WRITTEN_HERE,
)
from inference_blueprints.serving.engines.worker import KV_EVENTS, Sizing
from inference_blueprints.serving.host_cache import host_cache_mib
from inference_blueprints.serving.kv_transfer import NIXL_TELEMETRY, kv_transfer
from inference_blueprints.serving.media import allowed_domains, image_pixels, splits_by_image
from inference_blueprints.serving.memory import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnvironmentValue
from inference_blueprints.serving.weights import weights_environment

WORDS = EngineWords(
    length="context-length",
    sequences="max-running-requests",
    step_tokens="chunked-prefill-size",
    block_size="page-size",
    memory_share="mem-fraction-static",
    kv_cache_type="kv-cache-dtype",
    kv_cache_types=("auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"),
    without_prefix_cache=("disable-radix-cache", True),
    stretched_context="json-model-override-args",
)
_MODEL = "set weights.huggingFace"
_NAMED_DOWNLOAD = "weights come from the Hugging Face Hub; set weights.huggingFace"
OWNED_ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "model": _MODEL,
        "model-path": _MODEL,
        "revision": "set weights.revision",
        "load-format": _NAMED_DOWNLOAD,
        "model-loader-extra-config": _NAMED_DOWNLOAD,
        "trust-remote-code": REMOTE_CODE,
        "served-model-name": "set the model's name",
        **dict.fromkeys(("tensor-parallel-size", "tp-size"), TENSOR),
        **dict.fromkeys(("pipeline-parallel-size", "pp-size"), PIPELINE),
        **dict.fromkeys(("data-parallel-size", "dp-size", "enable-dp-attention"), DATA),
        **dict.fromkeys(("expert-parallel-size", "ep-size"), EXPERTS),
        **dict.fromkeys(("nnodes", "node-rank", "dist-init-addr"), NODES),
        "kv-events-config": "set routing: {kvAware: {}}",
        **dict.fromkeys(
            (
                "enable-hierarchical-cache",
                "hicache-size",
                "hicache-ratio",
                "hicache-host-memory-fraction",
                "hicache-host-memory-mode",
            ),
            "set kvCache: {hostMemoryGib: …}",
        ),
        "host": "Dynamo's frontend answers requests, not the engine",
        "port": "Dynamo's frontend answers requests, not the engine",
        "disaggregation-mode": TOPOLOGY,
        "disaggregation-transfer-backend": TOPOLOGY,
        "disaggregation-bootstrap-port": TOPOLOGY,
        "disagg-config": TOPOLOGY,
        "disagg-config-key": TOPOLOGY,
        "discovery-backend": DISCOVERY,
        "namespace": DISCOVERY,
        "endpoint": DISCOVERY,
        "config": WRITTEN_HERE,
        "frontend-decoding": FETCHED_BY_DYNAMO,
        **dict.fromkeys(("enable-multimodal", "allowed-media-domains", "limit-mm-data-per-request"), MEDIA),
        **dict.fromkeys(("mm-process-config", "mm-enable-dp-encoder"), MEDIA),
        **dict.fromkeys(("dedicated-mm-encoder", "encoder-only", "language-only"), TOPOLOGY),
    }
)
# Dynamo's router and SGLang hash pages of this many tokens; attention on Blackwell accepts no larger ones.
BLOCK_SIZE = 64
# Its image has the streamer without what reads S3 (requirements of ``sglang[diffusion]``).
STREAMS_WEIGHTS = False
# Each prefill device writes its part of the heads (``compute_head_slice_params`` in its NIXL connection).
GATHERS_HEADS = True
KV_CACHE_TIERS: frozenset[str] = frozenset({"hostMemoryGib"})
# What HiCache wants free when it takes its own (``mem_cache/pool_host/base.py`` of SGLang 0.5.21).
HOST_CACHE_RESERVE_MIB = 10 * 1024
# Chunks are counted a stage of the prefill worker (``disaggregation/nixl/conn.py``).
STAGES_SEND_KV: frozenset[WorkerRole] = frozenset({"prefill"})
# Each node of a worker runs SGLang with ``--nnodes`` and its rank.
SPANS_NODES = True

# SGLang's own choice by GiB of device memory (``handle_gpu_memory_settings``).
_STEP_TOKENS = ((160, 16384), (60, 8192), (20, 4096), (0, 2048))
_GIB = 1024**3
_BYTES_PER_MIB, _BYTES_PER_GB = 2**20, 10**9
# The server through which decode workers find a prefill worker listens where the API server would.
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 -- of a pod


def step_tokens(accelerator: Accelerator) -> int:
    """Return the tokens of one step: SGLang's choice by the size of the device.

    Parameters
    ----------
    accelerator
        The device.
    """
    gib = accelerator.memory_bytes / _GIB
    return next(tokens for least, tokens in _STEP_TOKENS if gib >= least)


def memory_share(memory: MemoryEstimate, device_bytes: int) -> float:
    """Return ``--mem-fraction-static``: weights and KV cache, without activations and graphs.

    Parameters
    ----------
    memory
        How a device is filled.
    device_bytes
        The device's memory.
    """
    return (memory.total_bytes - memory.activation_bytes - memory.reserved_bytes) / device_bytes


def utilization(share: float, whole: MemoryEstimate) -> float:
    """Return the part of the device that ``--mem-fraction-static`` fills, activations and graphs included.

    Parameters
    ----------
    share
        The argument.
    whole
        The estimate for a device that is filled to the last byte.
    """
    return share + (whole.activation_bytes + whole.reserved_bytes) / whole.total_bytes


def kept_part(resolved: ResolvedWorkers) -> float:
    """Return how much of the memory for KV cache holds tokens, each counted once.

    Devices take whole gigabytes; of a latent each keeps a copy.

    Parameters
    ----------
    resolved
        The workers.
    """
    mib = host_cache_mib(resolved)
    if not mib:
        return 1
    devices = 1 if resolved.shape.attention == "mla" else resolved.tensor_parallel_size
    return _hicache_gigabytes(resolved) * _BYTES_PER_GB * devices / (mib * _BYTES_PER_MIB)


def arguments(resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
    """Return a worker's arguments by name without dashes, the user's merged in.

    Parameters
    ----------
    resolved
        The workers.
    sizing
        Their figures.
    """
    weights = resolved.model.weights
    planned: dict[str, Argument] = {"model-path": weights.hugging_face or ""}
    planned["served-model-name"] = resolved.model.name
    if weights.revision:
        planned["revision"] = weights.revision
    planned |= {
        **_parallelism(resolved),
        **WORDS.figures(sizing),
        **_of_all_ranks(resolved, sizing),
        "enable-metrics": True,
        **_image_arguments(resolved),
    }
    if kv_transfer(resolved):
        planned["disaggregation-mode"] = resolved.role
        planned["disaggregation-transfer-backend"] = "nixl"
    if host_cache_mib(resolved):
        planned |= {"enable-hierarchical-cache": True, "hicache-size": _hicache_gigabytes(resolved)}
    if resolved.role == "prefill":
        planned["host"] = _EVERY_ADDRESS
    if resolved.publishes_kv_events:
        planned["kv-events-config"] = _json(KV_EVENTS)
    return planned | dict(resolved.model.engine.arguments)


def _hicache_gigabytes(resolved: ResolvedWorkers) -> int:
    """Return ``--hicache-size``, which each device takes: by 0 it would be twice what the device holds."""
    each = host_cache_mib(resolved) * _BYTES_PER_MIB // resolved.tensor_parallel_size
    return max(1, each // _BYTES_PER_GB)


def _parallelism(resolved: ResolvedWorkers) -> Mapping[str, Argument]:
    """Return how a worker is split: the ranks of data parallel attention are within SGLang's tensor size."""
    planned: dict[str, Argument] = {"tensor-parallel-size": resolved.expert_accelerators}
    if resolved.pipeline_parallel_size > 1:
        planned["pipeline-parallel-size"] = resolved.pipeline_parallel_size
    if resolved.data_parallel_size > 1:
        planned |= {"data-parallel-size": resolved.data_parallel_size, "enable-dp-attention": True}
    if resolved.workers.expert_parallel:
        planned["expert-parallel-size"] = resolved.expert_accelerators
    return planned


def _of_all_ranks(resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
    """Return the figures that SGLang divides among its ranks (``arg_groups/parallel_hook.py``)."""
    ranks = resolved.data_parallel_size
    return {
        WORDS.sequences: sizing.max_num_seqs * ranks,
        WORDS.step_tokens: sizing.max_num_batched_tokens * ranks,
    }


def environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return a worker's environment as far as it is the engine's business.

    Parameters
    ----------
    resolved
        The workers.
    """
    transfer = kv_transfer(resolved)
    back_end = {"libfabric": {"SGLANG_DISAGGREGATION_NIXL_BACKEND": "LIBFABRIC"}}
    return {
        **back_end.get(transfer or "", {}),
        # It comes with NIXL 1.5.0 (requirements of ``ai-dynamo[sglang]``); vLLM, with 1.4.1, counts itself.
        **(NIXL_TELEMETRY if transfer else {}),
        **weights_environment(resolved.model.weights),
    }


def _image_arguments(resolved: ResolvedWorkers) -> dict[str, Argument]:
    """Return what is said of images: how many, how large, whence.

    Dynamo's worker hands the engine their addresses (``request_handlers/llm/decode_handler.py``), and the
    engine fetches them.
    """
    media, pixels = resolved.model.media, image_pixels(resolved)
    if resolved.shape.vision is None:
        return {}
    most = {"image": media.images_per_request if media else 0, "video": 0, "audio": 0}
    return {
        "limit-mm-data-per-request": _json(most),
        "allowed-media-domains": allowed_domains(resolved),
        **({"enable-multimodal": True} if media else {}),
        **({"mm-process-config": _json({"image": pixels})} if pixels else {}),
        **({"mm-enable-dp-encoder": True} if media and splits_by_image(resolved) else {}),
    }


def _json(value: Mapping[str, object]) -> str:
    """Render a JSON argument, the same each time."""
    return json.dumps(dict(value), separators=(",", ":"))
