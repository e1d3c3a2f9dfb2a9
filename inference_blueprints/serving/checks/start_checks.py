"""Checks of settings that each are allowed, and with which together the pinned engine does not start.

The rules are those of the engines' own checks: ``vllm/config`` and ``v1/worker/utils.py`` of vLLM 0.31.0,
``srt/arg_groups/validation_hook.py`` of SGLang 0.5.21.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from inference_blueprints.serving.engines.block_sizes import tensorrt_blocks
from inference_blueprints.serving.engines.serving_engine import json_object
from inference_blueprints.serving.engines.sglang import Sglang
from inference_blueprints.serving.engines.vllm import Vllm
from inference_blueprints.serving.engines.worker_sizing import engine_of, worker_sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding
from inference_contracts.units import GIB, MIB

#: Share of a device above which an engine starts only if nothing else uses the device, and may run out of
#: memory with the first large step (vllm-project/vllm#1298, #19186).
_FULL = 0.95
#: Allowance for the CUDA context of the process, which exists before vLLM compares the free memory with its
#: share (`request_memory` in ``v1/worker/utils.py``). No source states its size; it was not measured here.
_CONTEXT_MIB = 512
_HALF = ("half", "float16")
#: Families for which vLLM refuses float16 (`_FLOAT16_NOT_SUPPORTED_MODELS` in ``config/model.py``).
_NO_HALF = ("Gemma2", "Gemma3", "Glm4For")
#: vLLM's arguments that are JSON objects.
_JSON = (
    "additional-config",
    "attention-config",
    "default-chat-template-kwargs",
    "hf-overrides",
    "media-io-kwargs",
    "override-generation-config",
    "structured-outputs-config",
)

#: Steps of a mean prompt that nobody wants. A step takes about as long as reading all weights.
_MOST_STEPS = 100
#: `supports_compute_capability` of ``v1/attention/backends/mla/prefill``.
_BLACKWELL_PREFILL = ("FLASHINFER", "TRTLLM_RAGGED", "TOKENSPEED_MLA")

#: Name of the argument to change, and what is wrong with it.
_Found = Iterator[tuple[str, str]]


def start_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check the engine arguments of workers together: those of the user with those of the plan.

    Yields: An error for each that the engine refuses when it starts; a warning for a share of memory with
        which it may not start.
    """
    engine = resolved.model.engine.chosen
    given = resolved.model.engine.arguments
    if not given:
        return
    path = (*resolved.model_path, "engine", engine, "args")
    for name, message, severity in (*_memory_share(resolved), *_small_steps(resolved)):
        yield Finding((*path, name), message, severity)
    every = engine_of(resolved).arguments(resolved, worker_sizing(resolved))
    for rule in _RULES.get(engine, ()):
        for name, message in rule(resolved, every):
            # The plan's own values fit together.
            if name in given:
                yield Finding((*path, name), f"got {quote(given[name])}, {message}")


def _memory_share(resolved: ResolvedWorkers) -> Iterator[tuple[str, str, Literal["error", "warning"]]]:
    """Yield the share of the device's memory, if it leaves too little for what is not in it."""
    engine, name = resolved.model.engine.chosen, engine_of(resolved).argument_names.memory_share
    share = resolved.model.engine.arguments.get(name)
    if not name or not isinstance(share, int | float) or isinstance(share, bool) or share <= _FULL:
        return
    if engine == "tensorrtLlm":
        message = (
            f"got {share:g}, the part of what weights leave free that the KV cache takes: nothing is left "
            f"for graphs, or for a step that is larger than the measured one; set at most {_FULL}"
        )
        yield name, message, "warning"
        return
    device = resolved.accelerator.core
    left = (1 - share) * device.memory_bytes
    of_all = f"got {share:g}, which leaves {left / GIB:.1f} of {device.memory_bytes / GIB:.1f} GiB of each"
    if engine == "vllm" and left < _CONTEXT_MIB * MIB:
        message = (
            f"{of_all} {device.name}, and its CUDA context alone takes about {_CONTEXT_MIB} MiB before vLLM "
            "looks: it stops with 'Free memory on device … is less than desired GPU memory utilization'; set "
            f"at most {_FULL}"
        )
        yield name, message, "error"
        return
    message = (
        f"{of_all} {device.name} for its context, graphs and libraries; {engine} may not start, or run out "
        f"of memory with the first large step; set at most {_FULL}"
    )
    yield name, message, "warning"


def _small_steps(resolved: ResolvedWorkers) -> Iterator[tuple[str, str, Literal["error", "warning"]]]:
    """Yield the tokens of a step, if a mean prompt takes very many steps: engines start with one token."""
    name = engine_of(resolved).argument_names.step_tokens
    step, means = _count(resolved.model.engine.arguments, name), resolved.traffic.means
    if resolved.role == "decode" or not step:
        return
    if resolved.model.engine.sglang and step < resolved.data_parallel_size:
        message = (
            f"got {step}, which SGLang divides among {resolved.data_parallel_size} ranks: none is left for "
            f"one; set {resolved.data_parallel_size} or more times what a step may have"
        )
        yield name, message, "error"
        return
    of_rank = step // resolved.data_parallel_size if resolved.model.engine.sglang else step
    steps = math.ceil(means.input_tokens * (1 - means.shared_prefix_ratio) / of_rank)
    if steps > _MOST_STEPS:
        message = (
            f"got {step}, with which a mean prompt takes {steps:,} steps before its first token; set at "
            f"least {math.ceil(means.input_tokens / _MOST_STEPS):,}, or remove it"
        )
        yield name, message, "warning"


Arguments = Mapping[str, object]


def _steps_of_vllm(_: ResolvedWorkers, every: Arguments) -> _Found:
    """``SchedulerConfig.verify_max_model_len`` in ``config/scheduler.py``."""
    step, length = _count(every, "max-num-batched-tokens"), _count(every, "max-model-len")
    sequences, active = _count(every, "max-num-seqs"), _count(every, "max-num-active-seqs")
    if step and length and step < length and every.get("enable-chunked-prefill") is False:
        yield (
            "enable-chunked-prefill",
            f"and without it a prompt is one step, but 'max-num-batched-tokens' is {step} and "
            f"'max-model-len' {length}: vLLM does not start; remove it, or set 'max-num-batched-tokens: "
            f"{length}'",
        )
    if step and sequences and step < sequences:
        message = (
            f"but a step has a token of each sequence, and 'max-num-batched-tokens' is {step} with "
            f"'max-num-seqs' {sequences}: vLLM does not start; set 'max-num-batched-tokens' to {sequences} "
            "or more"
        )
        yield from ((name, message) for name in ("max-num-batched-tokens", "max-num-seqs"))
    if active and sequences and active > sequences:
        yield "max-num-active-seqs", f"but 'max-num-seqs' is {sequences}; set at most {sequences}"
    threshold = _count(every, "long-prefill-token-threshold")
    if threshold and length and threshold > length:
        yield "long-prefill-token-threshold", f"but 'max-model-len' is {length}; set at most {length}"


def _blocks_of_vllm(resolved: ResolvedWorkers, every: Arguments) -> _Found:
    """``select_common_block_size`` in ``v1/worker/utils.py``."""
    block, needed = _count(every, "block-size"), Vllm().needed_block(resolved)
    if block % needed:
        planned = Vllm().planned_block(resolved)
        yield (
            "block-size",
            f"but kernels of attention of {resolved.shape.name} take multiples of {needed}: vLLM does "
            f"not start; set {planned}, or remove it",
        )


def _types_of_vllm(resolved: ResolvedWorkers, every: Arguments) -> _Found:
    """``config/model.py``, and ``model_executor/layers`` for the formats of weights."""
    shape, kind = resolved.device_shape, str(every.get("dtype", "auto"))
    if kind in _HALF and shape.architecture.startswith(_NO_HALF):
        yield "dtype", f"but vLLM refuses it for {shape.name}, whose numbers grow too large; remove it"
    elif kind in _HALF and shape.weight_type == "mxfp4":
        yield "dtype", f"but vLLM computes {shape.name} in MXFP4 with bfloat16 only; remove it"
    has_scales = shape.quantisation_method in ("fp8", "modelopt")
    if every.get("kv-cache-dtype") == "fp8_e5m2" and (has_scales or resolved.model.quantization):
        yield (
            "kv-cache-dtype",
            "but 'fp8_e5m2 kv-cache is not supported with fp8 checkpoints' (vLLM); set kvCacheType: fp8",
        )


def _json_of_vllm(_: ResolvedWorkers, every: Arguments) -> _Found:
    for name in _JSON:
        if name in every:
            try:
                is_object = isinstance(json.loads(str(every[name])), dict)
            except ValueError:
                is_object = False
            if not is_object:
                yield name, "which is no JSON object; write it in quotes, such as '{\"name\": 1}'"


def _attention_of_vllm(resolved: ResolvedWorkers, every: Arguments) -> _Found:
    """``EngineArgs.create_engine_config``, and ``mla/prefill`` in ``v1/attention/backends``."""
    given = json_object(resolved.model.engine.arguments, "attention-config")
    if given.get("backend") and "attention-backend" in every:
        yield "attention-config", "and 'attention-backend' names kernels too, which vLLM refuses; remove one"
    prefill = str(given.get("mla_prefill_backend", "")).upper()
    capability = resolved.accelerator.compute_capability or ""
    if prefill in _BLACKWELL_PREFILL and resolved.shape.attention == "mla" and capability[:3] != "10.":
        yield (
            "attention-config",
            f"but the kernels {prefill} compute prompts on capability 10.x alone, and "
            f"{resolved.accelerator.name} has {capability}: vLLM does not start; leave 'mla_prefill_backend' "
            "out",
        )


def _files_of_vllm(resolved: ResolvedWorkers, every: Arguments) -> _Found:
    """Files of Mistral AI's own format, which repositories of other models do not have.

    `MistralTokenizer` in ``tokenizers/mistral.py``; `MistralConfigParser` in ``transformers_utils``.
    """
    files = {"tokenizer-mode": "tekken.json or tokenizer.model.v*", "config-format": "params.json"}
    for name, file in files.items():
        if str(every.get(name, "")).lower() == "mistral" and not _is_of_mistral(resolved.shape.architecture):
            yield name, f"which needs {file}, and {resolved.shape.name} is no model of Mistral AI; remove it"


def _is_of_mistral(architecture: str) -> bool:
    return any(word in architecture for word in ("Mistral", "Ministral", "Mixtral", "Pixtral", "Voxtral"))


def _processors_of_vllm(_: ResolvedWorkers, every: Arguments) -> _Found:
    """``ParallelConfig._validate_parallel_config`` in ``config/parallel.py``."""
    for name in ("numa-bind-nodes", "numa-bind-cpus"):
        if name in every and every.get("numa-bind") is not True:
            yield name, "which needs 'numa-bind: true' beside it; add that, or remove this"


def _steps_of_sglang(resolved: ResolvedWorkers, every: Arguments) -> _Found:
    """``check_server_args`` in ``srt/arg_groups/validation_hook.py``."""
    step, page = _count(every, "chunked-prefill-size"), _count(every, "page-size")
    if step and page and step % page and resolved.role != "decode":
        message = (
            f"but 'chunked-prefill-size' {step} must be a multiple of 'page-size' {page}: SGLang does not "
            f"start; set {max(1, step // page) * page}"
        )
        yield "chunked-prefill-size", message
        if "chunked-prefill-size" not in resolved.model.engine.arguments:
            yield "page-size", message
    sizes = Sglang().kept_blocks(resolved)
    if page and sizes and page not in sizes:
        yield (
            "page-size",
            f"but kernels of attention of {resolved.shape.name} take {_either(sizes)}, and SGLang would take "
            "one of these instead; set that, or remove it",
        )
    if every.get("enable-mixed-chunk") is True and resolved.model.speculation:
        yield "enable-mixed-chunk", "which SGLang refuses with speculation; remove it, or 'speculation'"
    if every.get("disable-cuda-graph-padding") is True and every.get("enable-torch-compile") is True:
        yield "enable-torch-compile", "which SGLang refuses with 'disable-cuda-graph-padding'; remove one"


def _blocks_of_tensorrt(resolved: ResolvedWorkers, every: Arguments) -> _Found:
    """Check ``tokens_per_block``, "KV cache reuse" of TensorRT-LLM's documentation."""
    block, sizes = _count(every, "kv-block-size"), tensorrt_blocks(resolved.device_shape)
    if block and sizes and block not in sizes:
        name = resolved.shape.name
        yield "kv-block-size", f"but {name} needs {_either(sizes)} in TensorRT-LLM; set that, or remove it"
    elif block and block & (block - 1):
        yield "kv-block-size", "but the tokens of a block must be a power of two; set 32, or remove it"


def _steps_of_tensorrt(_: ResolvedWorkers, every: Arguments) -> _Found:
    """Check tokens of a step.

    The unit of a part of a prompt is a block (``chunk_unit_size`` in
    ``_torch/pyexecutor/py_executor_creator.py``); its builder wants ``max_num_tokens`` of at least a block;
    prompts that are not divided are refused by ``_check_arguments`` in ``llmapi/llm.py``.
    """
    step, sequences = _count(every, "max-num-tokens"), _count(every, "max-batch-size")
    if step and sequences and step < sequences:
        message = (
            f"but a step has a token of each sequence, and 'max-num-tokens' is {step} with 'max-batch-size' "
            f"{sequences}; set 'max-num-tokens' to {sequences} or more"
        )
        yield from ((name, message) for name in ("max-num-tokens", "max-batch-size"))
    block, length = _count(every, "kv-block-size"), _count(every, "max-seq-len")
    if step and block and step < block:
        yield (
            "max-num-tokens",
            f"but a part of a prompt is whole blocks of {block} tokens, so no prompt is ever computed; set "
            f"{block} or more, or remove it",
        )
    elif step and step < length and every.get("trtllm.enable_chunked_prefill") in ("false", False):
        message = (
            f"and without parts of prompts, each above 'max-num-tokens' ({step}) is refused: 'The sum of "
            "prompt length … should not exceed max_num_tokens'; remove 'trtllm.enable_chunked_prefill', or "
            f"set 'max-num-tokens: {length}'"
        )
        yield from ((name, message) for name in ("max-num-tokens", "trtllm.enable_chunked_prefill"))


def _either(sizes: tuple[int, ...]) -> str:
    return " or ".join(map(str, sizes))


def _count(every: Arguments, name: str) -> int:
    """Return a whole number above 0; 0 if the argument is none."""
    value = every.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


_Rule = Callable[[ResolvedWorkers, Arguments], _Found]
_RULES: Mapping[str, tuple[_Rule, ...]] = MappingProxyType(
    {
        "vllm": (
            *(_steps_of_vllm, _blocks_of_vllm, _types_of_vllm),
            *(_json_of_vllm, _attention_of_vllm, _files_of_vllm, _processors_of_vllm),
        ),
        "sglang": (_steps_of_sglang,),
        "tensorrtLlm": (_blocks_of_tensorrt, _steps_of_tensorrt),
    }
)
