"""Checks that an engine runs a model's weights, attention and KV cache on the GPUs of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

import inference_catalog as catalog
from inference_blueprints.serving.checks.memory_checks import moved, smallest_size
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.serving_engine import ChosenKernels, changed_config
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.wording import listing, quote
from inference_catalog.cache_rules import cache_type
from inference_catalog.capabilities import (
    EngineSupport,
    SupportAnswer,
    attention_kind,
    cache_format,
    capabilities,
    engine_support,
    weight_format,
)
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass

_WEIGHTS = {
    "bf16": "weights in bfloat16",
    "fp16": "weights in float16",
    "fp8": "weights in FP8",
    "fp8Blocks": "weights in FP8 with a scale per block",
    "mxfp8": "weights in MXFP8",
    "nvfp4": "weights in NVFP4",
    "mxfp4": "weights in MXFP4",
    "int4": "weights in 4-bit integers",
    "int8": "weights in 8-bit integers",
}
_ATTENTION = {
    "full": "attention",
    "sinks": "attention with sinks",
    "mla": "latent attention",
    "sparseMla": "sparse latent attention",
    "packedMla": "the packed attention of DeepSeek V4",
}
_CACHE = {
    "16bit": "a KV cache in 16 bits",
    "fp8": "a KV cache in FP8",
    "fp8E4m3": "a KV cache in fp8_e4m3",
    "fp8E5m2": "a KV cache in fp8_e5m2",
}
#: Tool of the blueprint's type ``int4``, which is that of AWQ and GPTQ.
_INT4 = "gptq"
#: Bytes of a parameter in the formats that a message offers.
_BYTES: Mapping[Literal["fp8", "int4", "bf16"], float] = MappingProxyType(
    {"fp8": 1.0, "int4": 0.5, "bf16": 2.0}
)
#: GPUs that a message lists one by one.
_MANY = 4
#: Names of 16-bit types that engines take as their type of activations (``dtype``) and that are not bfloat16.
_HALF = ("half", "float16", "fp16")


@dataclass(frozen=True, slots=True)
class _Needed:
    """One thing that an engine must be able to do, in the table's words."""

    what: str
    """As part of a message."""
    format: str
    tool: str = ""
    """`format`, `tool`: Format of weights, and the tool that quantised them."""
    cache: str = ""
    """Type of the KV cache, if ``format`` is a kind of attention."""
    is_own_cache: bool = False
    """Whether the checkpoint or the engine chose this type."""

    def answer(self, support: EngineSupport, capability: str) -> SupportAnswer:
        """Return what an engine does with it on a capability."""
        if self.cache:
            return support.of_attention(self.format, self.cache, capability)
        return support.of_weights(self.format, self.tool, capability)


def capability_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check the workers against the table of engines, formats and compute capabilities.

    Yields: An error for what the engine does not run on the pool's GPUs; else a warning for the first thing
        of which nothing is known, or one for known wrong answers.
    """
    capability = resolved.accelerator.compute_capability
    support = engine_support().get(resolved.model.engine.chosen)
    if capability is None or support is None:
        return
    path = (*resolved.path, "pool")
    engine = f"{support.name} {support.release}"
    if support.release != resolved.engine.engine_version:
        yield Finding(path, _unread(resolved, support), "warning")
        return
    answers = [(needed, needed.answer(support, capability)) for needed in _needed(resolved)]
    got = (
        f"got {quote(resolved.pool.name)} with {resolved.types[0].name} ({resolved.accelerator.name}, "
        f"compute capability {capability}) for"
    )
    for needed, answer in answers:
        if answer.verdict == "refused":
            message = f"{got} {needed.what}: {engine} {answer.refusal}; {_remedy(needed, resolved)}"
            yield Finding(path, message)
            return
        for chosen in ENGINES[support.name].chosen_kernels(resolved.model.engine.arguments):
            if wrong := _wrong_backend(chosen, needed, resolved):
                yield Finding((*resolved.model_path, "engine", support.name, "args", chosen.argument), wrong)
                return
    unknown = [each for each in answers if each[1].verdict == "unknown"]
    for needed, answer in unknown[:1]:
        reason = f": {answer.note}" if answer.note else ""
        message = (
            f"{got} {needed.what}: whether {engine} runs it is not known{reason}; try one worker before "
            f"you rely on it, or {_remedy(needed, resolved)}"
        )
        yield Finding(path, message, "warning")
    for needed, answer in () if unknown else answers:
        if wrong := answer.wrong(capability):
            yield Finding(path, f"{got} {needed.what}: {engine} starts, but {wrong}", "warning")


def _wrong_backend(chosen: ChosenKernels, needed: _Needed, resolved: ResolvedWorkers) -> str:
    """Return what is wrong with chosen kernels of attention; empty if nothing is known to be."""
    support = engine_support()[resolved.model.engine.chosen]
    capability = resolved.accelerator.compute_capability or ""
    read = {name for row in support.attention.values() for name in row.backends}
    rows = needed.answer(support, capability).rows
    if not needed.cache or not rows or chosen.name not in read:
        return ""
    able = [name for name, places in rows[0].backends.items() if capability in places]
    if chosen.name in able:
        return ""
    others = f"take {listing(able)}, or remove it" if able else "remove it"
    return (
        f"got {quote(chosen.given)}, which {support.name} {support.release} does not have for {needed.what} "
        f"on {resolved.accelerator.name} ({capability}); {others}"
    )


def _unread(resolved: ResolvedWorkers, support: EngineSupport) -> str:
    return (
        f"whether {support.name} {resolved.engine.engine_version} runs the model on "
        f"{resolved.accelerator.name} is not known: the table of formats was read from {support.release}; "
        "try one worker before you rely on it"
    )


def _needed(resolved: ResolvedWorkers) -> Iterator[_Needed]:
    """Yield what the engine must run: its type of activations, the weights, and the attention."""
    shape, model = resolved.device_shape, resolved.model
    activations = _activations(resolved)
    yield _Needed(_WEIGHTS[activations], activations)
    weights = weight_format(shape)
    if weights not in ("bf16", "gguf"):
        # Quantised while it is loaded: no tool wrote the weights.
        tool = "online" if model.quantization else shape.quantisation_method
        if model.weights.type == "int4":
            tool = _INT4
        yield _Needed(_WEIGHTS[weights], weights, tool)
    if not model.makes_images:
        kind = attention_kind(shape)
        use = ENGINES[model.engine.chosen].used_cache(resolved, 0)
        # vLLM's name of the type of a checkpoint (`MODELOPT_TO_VLLM_KV_CACHE_DTYPE_MAP` in
        # ``utils/torch_utils.py`` of 0.31.0).
        is_of_checkpoint = use.rule == "vllm" and use.kv_type == "auto" and shape.cache.kv_type == "fp8"
        cache = cache_format("fp8_e4m3" if is_of_checkpoint else cache_type(shape, use))
        is_own = use.kv_type == "auto" and cache != "16bit"
        told = ", which 'auto' means here" if is_own else ""
        yield _Needed(
            f"{_ATTENTION[kind]} with {_CACHE[cache]}{told}", kind, cache=cache, is_own_cache=is_own
        )


def _activations(resolved: ResolvedWorkers) -> Literal["bf16", "fp16"]:
    """Return the type of activations."""
    arguments = resolved.model.engine.arguments
    dtype = str(arguments.get("dtype", "auto"))
    if dtype == "auto":
        changed = changed_config(arguments)
        dtype = str(changed.get("dtype") or changed.get("torch_dtype"))
    return "fp16" if dtype in _HALF else "bf16"


def _remedy(needed: _Needed, resolved: ResolvedWorkers) -> str:
    """Return what to do instead: another GPU, another engine, another format."""
    engine, capability = resolved.model.engine.chosen, resolved.accelerator.compute_capability or ""
    support = engine_support()[engine]
    able = [each for each in capabilities() if needed.answer(support, each).verdict == "runs"]
    ways = []
    gpus = _gpus(able, resolved)
    if gpus:
        ways.append(f"take a GPU on which it runs: {gpus}")
    others = [
        name
        for name, each in engine_support().items()
        if name != engine
        and name in STACKS[resolved.model.stack.chosen].frameworks
        and resolved.model.makes_images == (name == "vllmOmni")
        and needed.answer(each, capability).verdict == "runs"
    ]
    if others:
        ways.append(f"set 'engine: {{{others[0]}: {{}}}}'")
    if needed.is_own_cache:
        ways.append("set 'kvCacheType: bf16'")
    elif needed.cache and (needed.cache != "16bit" or needed.format == "packedMla"):
        ways.append("leave the type of the KV cache out")
    elif needed.format == "bf16" and support.weights["fp16"].verdict(capability) != "refused":
        ways.append(f"set 'engine: {{{engine}: {{args: {{dtype: half}}}}}}'")
    elif not needed.cache:
        formats = [
            name
            for name in _BYTES
            if name != needed.format
            and support.of_weights(name, "", capability).verdict == "runs"
            and _fits(_with_weights(resolved, name), *resolved.types)
        ]
        ways += [f"serve {' or '.join(_WEIGHTS[name] for name in formats)}"] if formats else []
    return ", or ".join(ways) or "name another model"


def _with_weights(resolved: ResolvedWorkers, name: Literal["fp8", "int4", "bf16"]) -> ResolvedWorkers:
    """Return the workers with the same model in another format; the bytes of scales are left out."""
    shape = resolved.shape
    weights = round(shape.parameters_billion * 1e9 * _BYTES[name])
    changed = replace(
        shape,
        weight_type=name,
        weight_block=0,
        weight_bytes=weights,
        expert_weight_bytes=round(shape.expert_weight_bytes / shape.weight_bytes * weights),
        prediction_weight_bytes=round(shape.prediction_weight_bytes / shape.weight_bytes * weights),
    )
    return replace(resolved, shape=changed)


def _fits(resolved: ResolvedWorkers, *kinds: catalog.InstanceType) -> bool:
    """Return whether a node of each instance type holds the model, with some tensor parallel size."""
    if resolved.model.makes_images:
        return True
    return all(
        kind.accelerator and smallest_size(moved(resolved, kind, kind.accelerator), kind.accelerator_count)
        for kind in kinds
    )


def _gpus(able: list[str], resolved: ResolvedWorkers) -> str:
    """Return the accelerators with these capabilities that hold the model, each with a family that has it."""
    largest: dict[str, catalog.InstanceType] = {}
    for kind in catalog.instance_types().values():
        device = kind.accelerator
        if device and device.compute_capability in able:
            known = largest.setdefault(device.name, kind)
            if kind.accelerator_count > known.accelerator_count:
                largest[device.name] = kind
    families = {name: kind.family for name, kind in largest.items() if _fits(resolved, kind)}
    names = sorted(families, key=lambda name: float(catalog.accelerators()[name].compute_capability or 0))
    every = [f"{name} ({families[name]})" for name in names]
    if len(every) > _MANY and able == list(capabilities())[-len(able) :]:
        return f"compute capability {able[0]} and newer, such as {', '.join(every[:_MANY])}"
    return ", ".join(every)
