"""How engines pad the weights of a model on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_catalog.cache_rules import CacheUse

if TYPE_CHECKING:
    from inference_catalog.model import Model

#: Multiples of the hidden size and of the width of an expert's part: of Marlin's and TensorRT-LLM's kernels
#: in vLLM, which are the largest (``mxfp4_round_up_hidden_size_and_intermediate_size`` in
#: ``layers/fused_moe/oracle/mxfp4.py`` of 0.31.0).
_VLLM_MXFP4 = (256, 128)
#: Of FlashInfer's kernels on compute capability 10.x, and of Triton's elsewhere
#: (``layers/quantization/mxfp4.py`` of SGLang 0.5.21).
_SGLANG_MXFP4_BLACKWELL, _SGLANG_MXFP4 = (256, 128), (1, 64)


def expert_padding(model: Model, use: CacheUse) -> tuple[int, int]:
    """Return the values to whose multiple the engine rounds the sizes of an expert: hidden size, and width.

    Only weights in MXFP4 are rounded. (1, 1) stands for no rounding, and for engines that publish no rule.

    Parameters
    ----------
    model
        The model as devices hold it.
    use
        How the engine is started.
    """
    if model.weight_type != "mxfp4" or use.rule == "every token":
        return 1, 1
    if use.rule == "vllm":
        return _VLLM_MXFP4
    return _SGLANG_MXFP4_BLACKWELL if use.capability.startswith("10.") else _SGLANG_MXFP4
