# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["aiconfigurator==0.12.0"]
# ///
"""Record how fast a model runs on an accelerator, from aiconfigurator's database of measured operators.

Writes ``catalog/inference_catalog/data/latency_profiles/ENGINE/MODEL/ACCELERATOR-tpN.json``:

    .venv/bin/uv run --script scripts/record_latency_profile.py Qwen/Qwen3-8B l40s 1 [--engine sglang]

Model and accelerator are entries of the catalogue; `Qwen/Qwen3-8B in fp8` is one with its weights in another
type. A model that aiconfigurator does not bundle takes the configuration of one with the same shape. Every
node of the tables is a prediction of the database. The error of interpolation halfway between the nodes is
measured and recorded with the profile. Only this script needs aiconfigurator (0.7 GB installed).
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import logging
import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

FOLDERS = Path(__file__).resolve().parents
# The repository. If this file comes from a wheel, the folder of installed packages.
LIBRARY = next(folder for folder in FOLDERS if (folder / "inference_blueprints").is_dir())
sys.path += [str(LIBRARY), *(str(LIBRARY / folder) for folder in ("contracts", "catalog", "runtime"))]

from aiconfigurator.cli.api import cli_estimate  # noqa: E402 -- after the library is on the path

import inference_catalog as catalog  # noqa: E402
from inference_blueprints.serving.estimates.memory_estimate import estimate_memory  # noqa: E402
from inference_catalog.figures import same_shape, stored_model  # noqa: E402

CATALOGUE = Path(catalog.__file__).parent / "data"
#: Per engine of the blueprint: aiconfigurator's name, and the release of its newest data.
BACKENDS = {
    "vllm": ("vllm", "0.24.0"),
    "sglang": ("sglang", "0.5.14"),
    "tensorrtLlm": ("trtllm", "1.3.0rc20"),
}
PREFILL_TOKENS = (1, *(round(64 * 2 ** (step / 2)) for step in range(19)))
KV_TOKENS = (0, *(512 * 2**step for step in range(14)))
CONTEXT_TOKENS = (1, *(128 * 2**step for step in range(9)))
LARGEST_BATCH = 512
LARGEST_STEP_TOKENS = 8192
ANSWER_TOKENS = 8
#: aiconfigurator's names of the types in which a model of 16 bits can be stored.
TYPES = {"fp8": "fp8", "fp8Blocks": "fp8_block", "int8": "int8_wo", "int4": "int4_wo", "nvfp4": "nvfp4"}
#: Below this compute capability, NVFP4 are weights only, and products are computed in 16 bits.
NVFP4_FROM = 10.0
BUNDLED = re.compile(r"model_configs/(\S+)_config\.json(, as fp8)?")


class Database:
    """Latencies of one model on one system, as aiconfigurator predicts them.

    model_path: aiconfigurator's name of the model, or a folder with its ``config.json``.
    system: aiconfigurator's name of the accelerator.
    tensor_parallel_size: Devices that share each layer; experts are divided the same way, as vLLM does by
        default.
    experts: Routed experts per layer. 0 for dense models.
    quantisation: aiconfigurator's name of the type of the layers, if the configuration does not state it.
    backend: aiconfigurator's name of the engine, and its release.
    """

    def __init__(
        self,
        model_path: str,
        system: str,
        tensor_parallel_size: int,
        experts: int,
        quantisation: str | None,
        *,
        backend: tuple[str, str],
    ) -> None:
        self._fixed: dict[str, object] = {
            "model_path": model_path,
            "system_name": system,
            "backend_name": backend[0],
            "backend_version": backend[1],
            "tp_size": tensor_parallel_size,
            "kvcache_quant_mode": "bfloat16",  # as `--kv-cache-dtype auto` gives, for FP8 weights too
            "gemm_quant_mode": quantisation,
        }
        if experts:
            sharding = {"moe_tp_size": tensor_parallel_size, "moe_ep_size": 1}
            self._fixed |= sharding | {"moe_quant_mode": quantisation}

    def prefill_ms(self, input_tokens: float) -> float:
        """Time to first token of a single request."""
        return float(cli_estimate(**self._fixed, isl=round(input_tokens), osl=2, batch_size=1).ttft)

    def decode_ms(self, kv_tokens: float, context_tokens: float) -> float:
        """One decode step of equal requests with this context length and this total number of KV tokens."""
        batch = max(1, min(LARGEST_BATCH, round(kv_tokens / context_tokens)))
        context = max(1, round(kv_tokens / batch))
        step = {"mode": "static_gen", "isl": context, "osl": ANSWER_TOKENS, "batch_size": batch}
        return float(cli_estimate(**self._fixed, **step).tpot)


def between(axis: Sequence[float], values: Sequence[float], at: float) -> float:
    """Interpolate linearly between the nodes of a table, as the simulated engine does."""
    upper = min(max(bisect_right(axis, at), 1), len(axis) - 1)
    share = (at - axis[upper - 1]) / (axis[upper] - axis[upper - 1])
    return values[upper - 1] * (1 - share) + values[upper] * share


def middles(axis: Sequence[float]) -> list[float]:
    """Return the midpoints between the nodes, without the interval that starts at zero."""
    return [(low + high) / 2 for low, high in itertools.pairwise(axis[1:])]


def covering(nodes: Sequence[int], largest: int) -> list[int]:
    """Return the nodes up to the first that is at least the largest value."""
    return list(nodes[: next((i for i, node in enumerate(nodes) if node >= largest), len(nodes)) + 1])


def record(database: Database, context_length: int, kv_capacity: int) -> dict[str, object]:
    """Fill the tables of a profile and measure the error of interpolation."""
    lengths = [length for length in PREFILL_TOKENS if length <= min(context_length, kv_capacity)]
    prefill = [database.prefill_ms(length) for length in lengths]
    kv_axis, context_axis = covering(KV_TOKENS, kv_capacity), covering(CONTEXT_TOKENS, context_length)
    decode = [[database.decode_ms(kv, context) for context in context_axis] for kv in kv_axis]
    errors = [between(lengths, prefill, at) / database.prefill_ms(at) - 1 for at in middles(lengths)]
    for kv, context in itertools.product(middles(kv_axis), middles(context_axis)):
        if context <= kv <= context * LARGEST_BATCH:
            columns = [between(context_axis, row, context) for row in decode]
            errors.append(between(kv_axis, columns, kv) / database.decode_ms(kv, context) - 1)
    return {
        "mean_error_percent": round(sum(map(abs, errors)) / len(errors) * 100, 1),
        "largest_error_percent": round(max(map(abs, errors)) * 100, 1),
        "prefill_isl": lengths,
        "prefill_ttft_ms": [round(value, 2) for value in prefill],
        "decode_active_kv_tokens": kv_axis,
        "decode_context_length": context_axis,
        "decode_itl": [[round(value, 2) for value in row] for row in decode],
    }


def main() -> None:
    """Record the requested profile."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("model", help="model of the catalogue")
    options.add_argument("accelerator", help="accelerator of the catalogue")
    options.add_argument("tensor_parallel_size", type=int, help="devices that share each layer")
    options.add_argument(
        "--engine", choices=BACKENDS, default="vllm", help="engine, named as in the blueprint"
    )
    options.add_argument("--model-path", help="folder with config.json, for a model that is not bundled")
    options.add_argument(
        "--directory",
        type=Path,
        default=CATALOGUE,
        help="write to this folder instead of the catalogue",
    )
    given = options.parse_args()
    logging.disable(logging.WARNING)
    model, accelerator = stored_model(given.model, catalog.models()), catalog.accelerator(given.accelerator)
    if model is None:
        options.error(f"the catalogue has no model {given.model}")
    if accelerator.performance_system is None:
        options.error(f"aiconfigurator has no data for {accelerator.name}")
    entry, _, stored = model.name.partition(" in ")
    sources = [catalog.model(name).source for name in same_shape(entry, catalog.models())]
    bundled = next(filter(None, map(BUNDLED.search, sources)), None)
    if given.model_path:
        path = given.model_path
    elif bundled:
        path = bundled.group(1).replace("--", "/", 1)
    else:
        options.error(f"{model.name} is not bundled with aiconfigurator; set --model-path")
    quantisation = "fp8_block" if bundled and bundled.group(2) else None
    if stored:
        quantisation = TYPES[stored]
        if stored == "nvfp4" and float(accelerator.compute_capability or 0) < NVFP4_FROM:
            quantisation = "nvfp4_wo"
    size = given.tensor_parallel_size
    backend, version = BACKENDS[given.engine]
    memory = estimate_memory(
        model,
        accelerator,
        tensor_parallel_size=size,
        max_model_len=1,
        max_num_batched_tokens=LARGEST_STEP_TOKENS,
    )
    if not memory.fits:
        options.error(f"{model.name} does not fit {size} x {accelerator.name}")
    database = Database(
        path,
        accelerator.performance_system,
        size,
        model.experts,
        quantisation,
        backend=(backend, version),
    )
    profile = {
        "model": model.name,
        "accelerator": accelerator.name,
        "tensor_parallel_size": size,
        "system": accelerator.performance_system,
        "backend": backend,
        "backend_version": version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"aiconfigurator 0.12.0, measured operators of {backend} {version}",
        **record(database, model.context_length, memory.kv_tokens),
    }
    name = f"latency_profiles/{given.engine}/{model.name}/{accelerator.name}-tp{size}.json"
    target = given.directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in profile.items()]
    text = "{\n" + ",\n".join(lines).replace("], [", "],\n    [") + "\n}\n"
    target.write_text(text, encoding="utf-8")
    mean, largest = profile["mean_error_percent"], profile["largest_error_percent"]
    print(f"{target}: interpolation error {mean} % on average, {largest} % at most")


if __name__ == "__main__":
    main()
