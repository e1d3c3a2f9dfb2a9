"""Reads the part of a model that encodes sound, from its ``config.json``."""

from __future__ import annotations

from inference_catalog.configurations.config_fields import Architecture, ConfigFields

#: Matrices of a layer, as multiples of the square of its width: attention with relative positions, two
#: feed-forward modules four times as wide, and the projections around a convolution.
_SQUARES = 5 + 2 * 2 * 4 + 3
_NORMS = 9
_KERNEL = 3 * 3


def audio_parameters(whole: ConfigFields, architecture: Architecture, hidden_size: int) -> int:
    """Count the part that encodes sound; 0 for a class or a file without one.

    Gemma 4 has a conformer (``Gemma4AudioModel`` in ``modeling_gemma4.py`` of transformers 5.17.0, which
    vLLM 0.31.0 runs) and a projection to the language model.

    Parameters
    ----------
    whole
        The whole file.
    architecture
        The class that it names.
    hidden_size
        Size of the language model's vectors.
    """
    audio = whole.section("audio_config") if architecture.conformer else None
    if audio is None:
        return 0
    width = audio.number("hidden_size", default=1024)
    heads = audio.number("num_attention_heads", default=8)
    output = audio.number("output_proj_dims", default=1536)
    layer = _SQUARES * width**2 + width * (_NORMS + audio.number("conv_kernel_size", default=5))
    first, second = (*audio.items("subsampling_conv_channels", int), 128, 32)[:2]
    convolutions = _KERNEL * (first + first * second) + first + second
    parameters = audio.number("num_hidden_layers", default=12, maximum=1000) * (layer + width // heads)
    parameters += convolutions + first // 4 * second * width
    return int(parameters + width * output + output + output * hidden_size)
