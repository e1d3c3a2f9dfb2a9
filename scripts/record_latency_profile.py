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

Beyond the longest length of an operator that NVIDIA measured, aiconfigurator takes the device to be as busy
as at that length (`perf_interp.rs`: "beyond the range -> hold a boundary util"). Such points are left out:
tables end where the first operator's measurements end, and decode steps beyond any measured one are null.
`measured_to` has the longest length of each operator, in tokens. This is about lengths only: the product with
the vocabulary, wider than any measured one, has one token per request, and its time is taken as it is.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDERS = Path(__file__).resolve().parents
# The repository. If this file comes from a wheel, the folder of installed packages.
LIBRARY = next(folder for folder in FOLDERS if (folder / "inference_blueprints").is_dir())
sys.path += [str(LIBRARY), *(str(LIBRARY / folder) for folder in ("contracts", "catalog", "runtime"))]

import aiconfigurator_core  # noqa: E402 -- after the library is on the path
import pyarrow.parquet  # noqa: E402
import yaml  # noqa: E402
from aiconfigurator.cli.api import cli_estimate  # noqa: E402

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
CONTEXT_TOKENS = (1, *(128 * 2**step for step in range(11)))
LARGEST_BATCH = 512
LARGEST_STEP_TOKENS = 8192
ANSWER_TOKENS = 8
#: aiconfigurator's names of the types in which a model of 16 bits can be stored.
TYPES = {"fp8": "fp8", "fp8Blocks": "fp8_block", "int8": "int8_wo", "int4": "int4_wo", "nvfp4": "nvfp4"}
#: Below this compute capability, NVFP4 are weights only, and products are computed in 16 bits.
NVFP4_FROM = 10.0
#: Bytes of a value that devices exchange.
EXCHANGED_BYTES = 2
SYSTEMS = Path(aiconfigurator_core.__file__).parent / "systems"
MEASUREMENTS = SYSTEMS / "data"
#: A step that takes so many times as long as reading its weights was measured with kernels that were not
#: tuned, or with the time of the host.
MOST_READINGS = 20
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
        batch, context = decode_step(kv_tokens, context_tokens)
        step = {"mode": "static_gen", "isl": context, "osl": ANSWER_TOKENS, "batch_size": batch}
        return float(cli_estimate(**self._fixed, **step).tpot)


def decode_step(kv_tokens: float, context_tokens: float) -> tuple[int, int]:
    """Return the number of requests of a decode step, and their length."""
    batch = max(1, min(LARGEST_BATCH, round(kv_tokens / context_tokens)))
    return batch, max(1, round(kv_tokens / batch))


@dataclass(frozen=True)
class MeasuredLengths:
    """What NVIDIA measured of the operators of one model on one system."""

    tokens: dict[str, int]
    """The most tokens at once, or the longest context, by table."""
    steps: dict[int, int]
    """The most requests of a decode step, by the length of their contexts."""

    @property
    def prompt_tokens(self) -> int:
        """The longest prompt whose prefill no operator's table ends before."""
        return min(value for name, value in self.tokens.items() if "generation" not in name)

    def has(self, requests: int, context: int) -> bool:
        """Return whether a decode step lies between measured ones."""
        lengths = sorted(self.steps)
        upper = bisect_right(lengths, context - 1)
        if upper == len(lengths):
            return False
        around = {lengths[upper], lengths[upper if lengths[upper] == context else max(0, upper - 1)]}
        return all(requests <= self.steps[length] for length in around)


@dataclass(frozen=True)
class Tables:
    """NVIDIA's measurements of one engine on one system, as the wheel of aiconfigurator has them."""

    system: str
    backend: str
    release: str

    def file(self, family: str, name: str) -> Path | None:
        """Return the file of a table: of the release, or of an older one, as the database takes it."""
        folder = MEASUREMENTS / self.system / family / self.backend
        own = folder / self.release / f"{name}.parquet"
        return own if own.is_file() else max(folder.glob(f"*/{name}.parquet"), default=None)

    def rows(
        self, family: str, name: str, columns: Sequence[str], **shape: str | int
    ) -> list[dict[str, Any]]:
        """Return columns of the rows of a table that have a shape. Raises LookupError if it has none."""
        file, filters = self.file(family, name), [(key, "=", value) for key, value in shape.items()]
        found: list[dict[str, Any]] = []
        if file:
            table = pyarrow.parquet.read_table(file, columns=[*columns], filters=filters or None)
            found = table.to_pylist()
        if not found:
            raise LookupError(
                f"aiconfigurator measured no {name} of {self.backend} on {self.system}: {shape}"
            )
        return found


def measured(tables: Tables, model: catalog.Model, size: int) -> MeasuredLengths:
    """Read how far the operators of a model were measured.

    size: Devices that share each layer.
    Raises LookupError if a table does not have the model's shape: the database would scale another one.
    """
    shape: dict[str, str | int] = {"num_heads": model.attention_heads // size, "kv_cache_dtype": "bfloat16"}
    if model.attention == "gqa":
        kv_heads = max(1, model.kv_heads // size)
        shape |= {"num_key_value_heads": kv_heads, "head_dim": model.head_size, "window_size": 0}
        family, prefill, decode = "attention", "context_attention_perf", "generation_attention_perf"
    elif model.index_layers:
        family, prefill, decode = "sparse_attention", "dsa_context_module_perf", "dsa_generation_module_perf"
    elif tables.file("mla", "mla_context_module_perf"):
        family, prefill, decode = "mla", "mla_context_module_perf", "mla_generation_module_perf"
    else:
        family, prefill, decode = "mla", "context_mla_perf", "generation_mla_perf"
    steps: dict[int, int] = {}
    for row in tables.rows(family, decode, ("isl", "step", "batch_size"), **shape):
        length = row["isl"] + row["step"]
        steps[length] = max(steps.get(length, 0), row["batch_size"])
    tokens = {
        prefill: max(row["isl"] for row in tables.rows(family, prefill, ("isl",), **shape)),
        decode: max(steps),
        "gemm_perf": fewest(tables.rows("gemm", "gemm_perf", ("gemm_dtype", "m"))),
    }
    if model.experts:
        found = tables.rows(
            "moe",
            "moe_perf",
            ("moe_dtype", "num_tokens"),
            num_experts=model.experts,
            hidden_size=model.hidden_size,
            inter_size=model.feed_forward_size,
            moe_tp_size=size,
            moe_ep_size=1,
        )
        tokens["moe_perf"] = fewest(found)
    if size > 1:
        found = tables.rows("comm", "custom_allreduce_perf", ("message_size",), num_gpus=size)
        largest = max(row["message_size"] for row in found)
        tokens["custom_allreduce_perf"] = largest // (model.hidden_size * EXCHANGED_BYTES)
    return MeasuredLengths(tokens, steps)


def demand_tuned(database: Database, model: catalog.Model, system: str, size: int) -> None:
    """Raise LookupError if a decode step takes far longer than reading the weights that it uses.

    size: Devices that share each layer.
    """
    specification = yaml.safe_load((SYSTEMS / f"{system}.yaml").read_text(encoding="utf-8"))
    used = model.weight_bytes * model.active_parameters_billion / model.parameters_billion
    reading_ms = used / size / specification["gpu"]["mem_bw"] * 1000
    step_ms = database.decode_ms(0, 1)
    if step_ms > MOST_READINGS * reading_ms:
        raise LookupError(
            f"a decode step takes {step_ms:.0f} ms and reading its weights {reading_ms:.1f} ms: the kernels "
            "that aiconfigurator measured were not tuned"
        )


def fewest(found: list[dict[str, Any]]) -> int:
    """Return the longest length of the type of weights whose measurements end first.

    found: Rows of a type and a length.
    """
    longest: dict[str, int] = {}
    for kind, length in (row.values() for row in found):
        longest[kind] = max(longest.get(kind, 0), length)
    return min(longest.values())


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


def record(
    database: Database, measured: MeasuredLengths, context_length: int, kv_capacity: int
) -> dict[str, object]:
    """Fill the tables of a profile as far as was measured, and measure the error of interpolation."""
    longest = min(context_length, kv_capacity, measured.prompt_tokens)
    lengths = [length for length in PREFILL_TOKENS if length <= longest]
    prefill = [database.prefill_ms(length) for length in lengths]
    contexts = [each for each in covering(CONTEXT_TOKENS, context_length) if measured.has(1, each)]
    known = {context: largest_step(measured, context) for context in contexts}
    kv_axis = [kv for kv in covering(KV_TOKENS, kv_capacity) if kv <= max(known.values())]
    steps = {
        (kv, context): database.decode_ms(kv, context)
        for kv, context in itertools.product(kv_axis, contexts)
        if kv <= known[context]
    }
    errors = [between(lengths, prefill, at) / database.prefill_ms(at) - 1 for at in middles(lengths)]
    for (low, high), (near, far) in itertools.product(
        itertools.pairwise(kv_axis[1:]), itertools.pairwise(contexts[1:])
    ):
        kv, context = (low + high) / 2, (near + far) / 2
        if context <= kv <= context * LARGEST_BATCH and {(high, near), (high, far)} <= steps.keys():
            ends = [between((near, far), (steps[end, near], steps[end, far]), context) for end in (low, high)]
            errors.append(between((low, high), ends, kv) / database.decode_ms(kv, context) - 1)
    return {
        "measured_to": sorted(measured.tokens.items()),
        "mean_error_percent": round(sum(map(abs, errors)) / len(errors) * 100, 1),
        "largest_error_percent": round(max(map(abs, errors)) * 100, 1),
        "prefill_isl": lengths,
        "prefill_ttft_ms": [round(value, 2) for value in prefill],
        "decode_active_kv_tokens": kv_axis,
        "decode_context_length": contexts,
        "decode_itl": [
            [round(steps[kv, context], 2) if (kv, context) in steps else None for context in contexts]
            for kv in kv_axis
        ],
    }


def largest_step(measured: MeasuredLengths, context: int) -> int:
    """Return the KV tokens up to which all steps of a column of the table lie between measured ones."""
    reached = itertools.takewhile(lambda kv: measured.has(*decode_step(kv, context)), KV_TOKENS)
    return max(reached, default=0)


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
    system = accelerator.performance_system
    database = Database(path, system, size, model.experts, quantisation, backend=(backend, version))
    try:
        found = measured(Tables(system, backend, version), model, size)
        demand_tuned(database, model, system, size)
    except LookupError as error:
        options.error(str(error))
    profile = {
        "model": model.name,
        "accelerator": accelerator.name,
        "tensor_parallel_size": size,
        "system": system,
        "backend": backend,
        "backend_version": version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"aiconfigurator 0.12.0, measured operators of {backend} {version}",
        **record(database, found, model.context_length, memory.kv_tokens),
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
