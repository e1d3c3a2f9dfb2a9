"""What a layer of attention caches besides the keys and values of one pass."""

from __future__ import annotations

from dataclasses import replace

from inference_catalog.cached_layers import CachedLayers
from inference_catalog.configurations.config_fields import ConfigFields

_MAX_TIMES = 100


def repeated(fields: ConfigFields, own: CachedLayers, index: int) -> tuple[CachedLayers, ...]:
    """Return what a layer caches each further time that a token passes it.

    ``iquest_loopcoder.py`` and ``hrm_text.py`` of vLLM 0.31.0, and ``nanbeige.py`` of SGLang 0.5.21.

    Parameters
    ----------
    fields
        The language model's fields.
    own
        What the layer caches the first time.
    index
        Its number, from 0.
    """
    loops = fields.number("loop_num", default=1, maximum=_MAX_TIMES)
    if loops > 1:
        window = fields.number("loop_window_size", default=0)
        further = replace(own, kind="window", window=window) if window else own
        return (replace(further, own=False),) * (loops - 1)
    if fields.value("H_cycles") is None:
        return ()
    times = fields.number("H_cycles", maximum=_MAX_TIMES)
    if index < fields.number("num_layers_per_stack", "num_hidden_layers"):
        times *= fields.number("L_cycles", maximum=_MAX_TIMES)
    return (replace(own, own=False),) * (times - 1)


def convolved(fields: ConfigFields, own: CachedLayers) -> tuple[CachedLayers, ...]:
    """Return what short convolutions around attention cache (``models/inkling`` of vLLM 0.31.0).

    They are the last tokens of keys, of values and of both results. Each KV head has as many values of them
    as the next power of two.

    Parameters
    ----------
    fields
        The language model's fields.
    own
        What the layer caches for attention.
    """
    if fields.value("d_rel") is None:
        return ()
    kernel = fields.number("sconv_kernel_size", "conv_kernel_size", default=4)
    values = 2 * (own.head_size + fields.number("hidden_size") // own.kv_heads)
    half = (1 << (values - 1).bit_length()) // 2  # as if they were a key and a value
    return (
        CachedLayers(
            1, "window", kv_heads=own.kv_heads, head_size=half, window=kernel, block=kernel, own=False
        ),
    )
