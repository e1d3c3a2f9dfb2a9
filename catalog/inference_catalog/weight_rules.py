"""How engines pad and copy the weights of a model on a device."""

from __future__ import annotations

from dataclasses import replace

from inference_catalog.cache_rules import CacheRule, CacheUse
from inference_catalog.model import LAYER_LETTERS, ExpertPadding, LayerType, Model

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
#: Classes whose encoder SGLang 0.5.21 holds whole, but for its attention (``models/kimi_k25.py``), whose part
#: entries do not give: under a third of the encoder, 0.3 % of Kimi K2.5 on 8 devices, is counted too much.
_WHOLE_ENCODER = frozenset({"KimiK25ForConditionalGeneration"})
_PLAIN_BYTES = 2


def whole_bytes(model: Model, rule: CacheRule) -> int:
    """Return how many bytes more a device holds whole than with vLLM, less those that the engine divides.

    Entries say what vLLM's classes hold whole. SGLang holds the embeddings of some classes whole, or their
    encoders, and divides the encoders of others. This is counted in the first stage.

    Parameters
    ----------
    model
        All stages of a model.
    rule
        Engine that runs it.
    """
    encoders = model.vision.weight_bytes if model.vision else 0
    if rule == "sglang" and model.architecture in _WHOLE_ENCODER:
        return encoders
    if rule != "sglang" or model.architecture not in _WHOLE_EMBEDDING:
        return 0
    tables = _PLAIN_BYTES * model.vocabulary_size * model.hidden_size
    if len(model.layer_order) == model.layers:
        # An encoder of sound is in no field: vLLM holds it whole, outside of the layers.
        layers = [model.layer_types[LAYER_LETTERS.index(letter)] for letter in model.layer_order]
        encoders = max(encoders, _whole(model) - sum(map(_whole, layers)))
        inside = sum(each.weight_bytes for each in layers)
        tables = model.weight_bytes - model.output_bytes - inside - encoders
    return tables - (encoders if model.architecture in _DIVIDED_ENCODER else 0)


def _whole(weights: Model | LayerType) -> int:
    return sum(each.bytes for each in weights.less_divided if each.parts == 1)


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
