"""How engines pad and copy the weights of a model on a device."""

from __future__ import annotations

from dataclasses import replace

from inference_catalog.cache_rules import CacheUse
from inference_catalog.model import ExpertPadding, Model

#: Multiples of the hidden size and of the width of an expert's part: of Marlin's and TensorRT-LLM's kernels
#: in vLLM, which are the largest (``mxfp4_round_up_hidden_size_and_intermediate_size`` in
#: ``layers/fused_moe/oracle/mxfp4.py`` of 0.31.0).
_VLLM_MXFP4 = ExpertPadding(256, 128)
#: Of FlashInfer's kernels on compute capability 10.x, and of Triton's elsewhere
#: (``layers/quantization/mxfp4.py`` of SGLang 0.5.21).
_SGLANG_MXFP4_BLACKWELL, _SGLANG_MXFP4 = ExpertPadding(256, 128), ExpertPadding(1, 64)
#: Classes whose embedding SGLang 0.5.21 holds whole on every device (``Gemma3TextScaledWordEmbedding`` in
#: ``models/gemma3_causal.py``), and those of them whose encoder it divides (``models/gemma4_vision.py``).
_WHOLE_EMBEDDING = frozenset(
    {
        "Gemma3ForCausalLM",
        "Gemma3ForConditionalGeneration",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
    }
)
_DIVIDED_ENCODER = frozenset({"Gemma4ForConditionalGeneration"})
_PLAIN_BYTES = 2


def copied_bytes(model: Model, use: CacheUse) -> float:
    """Return what a device holds besides its part because SGLang divides some parts in another way than vLLM.

    Each stage of a pipeline counts with an embedding.
    """
    if use.rule != "sglang" or model.architecture not in _WHOLE_EMBEDDING:
        return 0
    copied = _PLAIN_BYTES * model.vocabulary_size * model.hidden_size
    if model.vision and model.architecture in _DIVIDED_ENCODER:
        copied -= model.vision.weight_bytes
    return copied * (1 - 1 / use.tensor_parallel_size)


def expert_padding(model: Model, use: CacheUse) -> ExpertPadding | None:
    """Return how the engine pads what a device holds of an expert; None if it does not, or publishes no rule.

    Sizes are rounded for weights in MXFP4. Some classes of vLLM have a least width of their own
    (``min_moe_intermediate_per_partition`` in ``models/kimi_k3/nvidia/model.py`` of 0.31.0).

    Parameters
    ----------
    model
        The model as devices hold it.
    use
        How the engine is started.
    """
    if use.rule == "vllm":
        rounded = _VLLM_MXFP4 if model.weight_type == "mxfp4" else ExpertPadding()
        return replace(rounded, least_width=0 if use.whole_experts else model.least_expert_part)
    if model.weight_type != "mxfp4" or use.rule == "every token":
        return None
    return _SGLANG_MXFP4_BLACKWELL if use.capability.startswith("10.") else _SGLANG_MXFP4


def holds_shared_experts_whole(use: CacheUse, data_parallel_size: int) -> bool:
    """Whether each device holds shared experts whole, because each computes them for some of the tokens.

    vLLM does with expert parallelism over several devices in each of several ranks, and its usual
    ``all2all_backend`` (``use_sequence_parallel_moe`` in ``config/parallel.py`` of 0.31.0).

    Parameters
    ----------
    use
        How the engine is started.
    data_parallel_size
        Ranks that share the experts.
    """
    return use.rule == "vllm" and use.whole_experts and min(use.tensor_parallel_size, data_parallel_size) > 1
