# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["aiconfigurator==0.12.0"]
# ///
"""Record aiconfigurator's memory estimates. Tests compare the project's own estimates with them.

Writes ``tests/unit/serving/aiconfigurator_memory.json``:

    .venv/bin/uv run --script scripts/record_memory_estimates.py
"""

from __future__ import annotations

import datetime
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from aiconfigurator_core.sdk.memory import estimate_kv_cache

TARGET = Path(__file__).resolve().parents[1] / "tests/unit/serving/aiconfigurator_memory.json"
BACKEND_VERSION = "0.24.0"
GPU_MEMORY_UTILIZATION = 0.9
MAX_NUM_SEQS = 256
CATALOGUE_NAMES = {
    "meta-llama/Meta-Llama-3.1-8B": "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Meta-Llama-3.1-70B": "meta-llama/Llama-3.1-70B-Instruct",
}


class MemoryCase(NamedTuple):
    """One case: a model of aiconfigurator on some devices. Dense models have expert parallel size 0."""

    model: str
    accelerator: str
    system: str
    tensor_parallel_size: int
    tokens: int
    expert_parallel_size: int


CASES = (
    MemoryCase("Qwen/Qwen3-0.6B", "l40s", "l40s", 1, 8192, 0),
    MemoryCase("Qwen/Qwen3-8B", "l40s", "l40s", 1, 2048, 0),
    MemoryCase("Qwen/Qwen3-8B", "l40s", "l40s", 1, 8192, 0),
    MemoryCase("Qwen/Qwen3-32B", "l40s", "l40s", 4, 8192, 0),
    MemoryCase("Qwen/Qwen3-32B", "h200", "h200_sxm", 1, 8192, 0),
    MemoryCase("Qwen/Qwen3-32B", "h200", "h200_sxm", 4, 8192, 0),
    MemoryCase("Qwen/Qwen3-32B-FP8", "l40s", "l40s", 2, 8192, 0),
    MemoryCase("Qwen/Qwen3-30B-A3B", "h100", "h100_sxm", 2, 8192, 1),
    MemoryCase("Qwen/Qwen3-235B-A22B-FP8", "h200", "h200_sxm", 4, 8192, 1),
    MemoryCase("Qwen/Qwen3-235B-A22B-FP8", "h200", "h200_sxm", 8, 8192, 8),
    MemoryCase("Qwen/Qwen3-235B-A22B-FP8", "b300", "b300_sxm", 1, 8192, 1),
    MemoryCase("deepseek-ai/DeepSeek-R1", "h200", "h200_sxm", 8, 8192, 8),
    MemoryCase("openai/gpt-oss-20b", "h100", "h100_sxm", 1, 8192, 1),
    MemoryCase("openai/gpt-oss-120b", "h100", "h100_sxm", 2, 8192, 1),
    MemoryCase("meta-llama/Meta-Llama-3.1-8B", "l40s", "l40s", 1, 8192, 0),
    MemoryCase("meta-llama/Meta-Llama-3.1-70B", "h200", "h200_sxm", 4, 8192, 0),
)


def estimate(case: MemoryCase) -> dict[str, Any]:
    """Run aiconfigurator for one case, with a BF16 KV cache as in vLLM's ``auto``."""
    experts = {}
    if case.expert_parallel_size:
        share = case.tensor_parallel_size // case.expert_parallel_size
        experts = {"moe_tp_size": share, "moe_ep_size": case.expert_parallel_size}
    answer = estimate_kv_cache(
        case.model,
        case.system,
        "vllm",
        BACKEND_VERSION,
        max_num_tokens=case.tokens,
        max_batch_size=MAX_NUM_SEQS,
        memory_fraction_kind="of_total",
        memory_fraction_value=GPU_MEMORY_UTILIZATION,
        tp_size=case.tensor_parallel_size,
        kvcache_quant_mode="bfloat16",
        **experts,
    )
    memory = answer["memory_breakdown"]
    return {
        "model": CATALOGUE_NAMES.get(case.model, case.model),
        "accelerator": case.accelerator,
        "tensor_parallel_size": case.tensor_parallel_size,
        "max_num_batched_tokens": case.tokens,
        "device_bytes": answer["total_gpu_capacity_bytes"],
        "weights_bytes": memory["weights_bytes"],
        "activation_bytes": memory["activations_bytes"],
        "reserved_bytes": memory["runtime_overhead_bytes"] + memory["comm_overhead_bytes"],
        "kv_bytes_per_token": answer["kv_size_per_token_bytes"],
        "kv_tokens": answer["total_kv_size_tokens"],
    }


def main() -> None:
    """Run every case and write the estimates."""
    logging.disable(logging.WARNING)
    document = {
        "source": f"aiconfigurator-core 0.12.0, estimate_kv_cache for vllm {BACKEND_VERSION}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "gpu_memory_utilization": GPU_MEMORY_UTILIZATION,
    }
    head = json.dumps(document, indent=2).removesuffix("\n}")
    lines = ",\n".join(f"    {json.dumps(estimate(case))}" for case in CASES)
    TARGET.write_text(f'{head},\n  "cases": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    print(f"{TARGET}: {len(CASES)} cases")


if __name__ == "__main__":
    main()
