"""Asks SGLang's own classes what models cost: bytes of weights, and how its pools divide a device's memory.

Runs with the Python of vLLM's environment, which does not have this library, and with SGLang's wheel and a
few more in PYTHONPATH. `record_sglang_layers.py` starts it as ``sglang_inside.py SM JOBS RESULTS``, with the
jobs of `layers_inside.py`. Each job takes the steps of SGLang's scheduler: resolve the arguments, build the
class, and let ``KVCacheConfigurator`` divide the memory and make the pools, on a device without data.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import layers_inside
import pretended_gpu
from layers_inside import Json

BUDGET = 1 << 40
"""Bytes that the pools may take: so many that a rest of less than a page or a state does not matter."""
_SMALL_BYTES = 1 << 20
_PROCESSORS = 132
_DEEPEST = 7

_MISSING_PACKAGES = (
    "IPython",
    "blobfile",
    "cutlass",
    "datasets",
    "deep_ep",
    "deep_gemm",
    "flash_attn",
    "flash_attn_interface",
    "flashinfer",
    "humming",
    "kernels",
    "modelscope",
    "outlines",
    "quack",
    "sgl_kernel",
    "tilelang",
    "tokenspeed_mla",
    "torch_memory_saver",
    "torchaudio",
    "triton_kernels",
)


def pretend(capability: pretended_gpu.Capability) -> None:
    """Make SGLang, which may not be imported yet, believe in GPUs of this compute capability."""
    os.environ.update(
        {
            "CUDA_VISIBLE_DEVICES": "0",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "SGLANG_USE_MESSAGE_QUEUE_BROADCASTER": "0",
            "TOKENIZERS_PARALLELISM": "false",
            "TRANSFORMERS_OFFLINE": "1",
        }
    )
    sys.meta_path.append(pretended_gpu.MissingPackages(_MISSING_PACKAGES))
    import deep_gemm
    import torch
    import torch.library

    deep_gemm.get_num_sms = lambda: _PROCESSORS
    torch.version.cuda = "13.0"
    answers: Mapping[str, Any] = {
        "device": contextlib.nullcontext(),
        "device_count": 8,
        "empty_cache": None,
        "get_device_name": "pretended",
        "is_available": True,
        "is_initialized": True,
        "mem_get_info": (80 << 30, 80 << 30),
        "synchronize": None,
    }
    for name, value in answers.items():
        setattr(torch.cuda, name, functools.partial(_answer, value))
    pretended_gpu.pretend_device(torch.cuda, capability)
    for name in ("_C", "sgl_kernel"):
        setattr(torch.ops, name, pretended_gpu.Operators(getattr(torch.ops, name), capability))
    pretended_gpu.tolerate_missing_operators(torch.library)
    import sglang.srt.model_executor.model_runner
    import sglang.srt.model_loader.loader
    import sglang.srt.models.registry
    import sglang.srt.server_args  # noqa: F401


def _answer(value: Any, *_: Any, **__: Any) -> Any:
    return value


def count(job: Mapping[str, Any]) -> Json:
    """Build a model's class as SGLang does before it loads weights, and divide memory among its pools."""
    from sglang.srt.configs.load_config import LoadConfig
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.distributed import bootstrap
    from sglang.srt.layers.moe import initialize_moe_config
    from sglang.srt.layers.quantization.fp4_utils import initialize_fp4_gemm_config
    from sglang.srt.layers.quantization.fp8_utils import initialize_fp8_gemm_config
    from sglang.srt.layers.quantization.unquant import initialize_bf16_gemm_config
    from sglang.srt.model_loader import loader
    from sglang.srt.model_loader.utils import set_default_torch_dtype
    from sglang.srt.runtime_context import SpawnRanks, publish
    from sglang.srt.server_args import ServerArgs

    folder = Path(tempfile.mkdtemp(prefix="layers-"))
    try:
        layers_inside.write_model(folder, job)
        layers_inside.know(job["configuration"].get("model_type"), ())
        arguments = ServerArgs(
            model_path=str(folder),
            skip_tokenizer_init=True,
            load_format="dummy",
            tp_size=job["tensor_parallel_size"],
            kv_cache_dtype=job["kv_cache_dtype"],
            device="cuda",
            disable_custom_all_reduce=True,
            mem_fraction_static=0.85,
        )
        publish(arguments, role="scheduler", ranks=SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0))
        config = ModelConfig.from_server_args(arguments)
        with pretended_gpu.without_data():
            _pretend_group(job["tensor_parallel_size"], arguments)
            bootstrap.init_layer_runtime(model_config=config)
            initialize_moe_config()
            initialize_fp8_gemm_config()
            initialize_fp4_gemm_config()
            initialize_bf16_gemm_config()
            load = LoadConfig(load_format="dummy", tp_rank=0)
            quantization = loader._get_quantization_config(config, load)
            with set_default_torch_dtype(config.dtype):
                model = loader._initialize_model(config, load, quantization)
            types = layers_inside.bytes_by_type(model)
            head = {
                "class": type(model).__qualname__,
                "dtype": layers_inside.type_name(config.dtype),
                "longest": config.context_len,
                "weights": sum(types.values()),
                "weight_types": types,
            }
            return head | _pools(arguments, config, model)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pretend_group(size: int, arguments: Any) -> None:
    """Make this process rank 0 of a tensor parallel group whose other members do not exist."""
    import torch.distributed as dist
    from sglang.srt.distributed import bootstrap, parallel_state
    from torch.testing._internal.distributed.fake_pg import FakeStore

    make = dist.new_group
    dist.new_group = lambda ranks=None, *_, **__: make(ranks, backend="fake")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
    parallel_state.init_model_parallel_group = functools.partial(
        parallel_state.init_model_parallel_group, use_pynccl=False
    )
    bootstrap._set_all_reduce_flags()
    bootstrap._init_parallel_groups(
        backend="fake", dist_init_method="tcp://127.0.0.1:1", server_args=arguments, gpu_id=0
    )


def _configurator(arguments: Any, config: Any, model: Any) -> Any:
    """Return what divides the memory, as ``ModelRunner.init_kv_cache_configurator`` makes it."""
    from sglang.srt.configs.model_config import AttentionArch
    from sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator
    from sglang.srt.mem_cache.kv_cache_dtype import configure_kv_cache_dtype
    from sglang.srt.model_executor.model_runner_components.layer_setup import resolve_layer_indices
    from sglang.srt.model_executor.model_runner_components.load_model_utils import resolve_sliding_window_size
    from sglang.srt.model_executor.model_runner_components.spec_aux_hidden_state import (
        resolve_spec_aux_hidden_state_config,
    )
    from sglang.srt.runtime_context import get_model, get_parallel, get_schedule, get_spec
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    guessing = SpeculativeAlgorithm.from_string(get_spec().speculative_algorithm)
    name, dtype = configure_kv_cache_dtype(
        server_args_kv_cache_dtype=get_model().kv_cache_dtype,
        model=model,
        model_dtype=config.dtype,
        is_draft_worker=False,
        is_dflash=False,
        speculative_draft_attention_backend=None,
    )
    return KVCacheConfigurator(
        device="cuda",
        gpu_id=0,
        attn_dp_size=get_parallel().attn_dp_size,
        pp_size=get_parallel().pp_size,
        pp_group=get_parallel().pp_group,
        model=model,
        model_config=config,
        server_args=arguments,
        kv_cache_dtype=dtype,
        kv_cache_dtype_str=name if name is not None else get_model().kv_cache_dtype,
        model_dtype=config.dtype,
        page_size=get_schedule().page_size,
        sliding_window_size=resolve_sliding_window_size(model, config),
        spec_algorithm=guessing,
        is_draft_worker=False,
        post_capture_kv_active=False,
        spec_aux_config=resolve_spec_aux_hidden_state_config(
            server_args=arguments, model_config=config, spec_algorithm=guessing, is_draft_worker=False
        ),
        is_hybrid_swa=config.is_hybrid_swa,
        is_hybrid_swa_compress=config.is_hybrid_swa_compress,
        use_mla_backend=config.attention_arch == AttentionArch.MLA,
        layer_info=resolve_layer_indices(model=model, model_config=config, is_draft_worker=False),
        forward_stream=None,
        req_to_token_pool=None,
        token_to_kv_pool_allocator=None,
        memory_pool_config=None,
    )


def _pools(arguments: Any, config: Any, model: Any) -> Json:
    """Divide `BUDGET` as ``_resolve_memory_pool_config`` does after it measured the free memory."""
    from sglang.srt.model_executor.pool_configurator import create_memory_pool_configurator
    from sglang.srt.runtime_context import get_schedule

    own = _configurator(arguments, config, model)
    rest, found = BUDGET, {}
    if own.mambaish_config is not None:
        rest = int(own._handle_max_mamba_cache(BUDGET / (1 << 30)) * (1 << 30))
        found = {
            "state": int(own.mambaish_config.mamba2_cache_params.mamba_cache_per_req),
            "states": get_schedule().max_mamba_cache_size,
            "states_per_request": own._calculate_mamba_ratio(),
        }
    sizes = own.config_from_budget(rest)
    sizes.max_running_requests = own.resolve_max_num_reqs(sizes.max_total_num_tokens)
    sizes = create_memory_pool_configurator(own).finalize_with_max_running_requests(sizes)
    made = own._init_pools(
        sizes=own._derive_pool_sizes(config=sizes), req_to_token_pool=None, token_to_kv_pool_allocator=None
    )
    return found | {
        "kv": own.kv_cache_dtype_str,
        "page": own.page_size,
        "window": own.sliding_window_size,
        "running": sizes.max_running_requests,
        "budget": BUDGET,
        "tokens": sizes.max_total_num_tokens,
        "window_tokens": sizes.swa_max_total_num_tokens,
        "pool": type(made.token_to_kv_pool).__name__,
        "allocated": _tensors(made.token_to_kv_pool),
    }


def _tensors(pool: Any) -> dict[str, int]:
    """Return the bytes of a pool's tensors by their attribute, without small ones."""
    import torch

    seen, found = set[int](), Counter[str]()

    def walk(value: Any, path: str, depth: int) -> None:
        if id(value) in seen or depth > _DEEPEST:
            return
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            whole = value if value._base is None else value._base
            if whole is value or id(whole) not in seen:
                seen.add(id(whole))
                found[path] += whole.numel() * whole.element_size()
        elif isinstance(value, (list, tuple, dict)):
            for each in value.values() if isinstance(value, dict) else value:
                walk(each, path, depth + 1)
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("sglang"):
            for name, each in vars(value).items():
                walk(each, f"{path}.{name}" if path else name, depth + 1)

    walk(pool, "", 0)
    return {path: size for path, size in found.items() if size > _SMALL_BYTES}


def main(capability: str, jobs: Path, results: Path) -> None:
    """Count every job."""
    major, minor = map(int, capability.split("."))
    pretend((major, minor))
    layers_inside.answer_jobs(capability, jobs, results, count)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
