"""Mamba and Mamba 2: layers that keep a state of one size per request."""

from __future__ import annotations

import math

from inference_catalog.cached_layers import CachedLayers, LayerState
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, WeightModule, matrices

PLAIN_BYTES = 2
_TYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}
_SHORT_TYPES = ("bfloat16", "float16")


def state_bytes(fields: ConfigFields) -> int:
    """Return the bytes of a value of the state, which a file may set apart from the other types."""
    name = "mamba_ssm_dtype" if fields.has("mamba_ssm_dtype") else "mamba_ssm_cache_dtype"
    given = fields.value(name)
    if given is not None and (not isinstance(given, str) or given not in _TYPES):
        fields.wrong(name, f"one of {', '.join(_TYPES)}")
    return _TYPES.get(str(given), PLAIN_BYTES)


def recurrent_state(fields: ConfigFields, values: int) -> LayerState:
    """Return the state that is no convolution's, of so many values."""
    is_set = fields.value("mamba_ssm_dtype") in _SHORT_TYPES
    return LayerState(values, state_bytes(fields), set_by_model=is_set)


def mamba(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return a layer of Mamba (``mamba_mixer.py`` of vLLM 0.31.0)."""
    del kind, index
    hidden = fields.number("hidden_size")
    inner = fields.number(
        *(("intermediate_size",) if architecture.pattern == "state" else ()),
        default=hidden * fields.number("mamba_expand", "expand", default=2),
    )
    state = fields.number("mamba_d_state", "state_size", default=16)
    rank = _rank(fields, hidden)
    kernel = fields.number("mamba_d_conv", "conv_kernel", default=4)
    found = matrices(
        architecture.state_path,
        in_proj=hidden * 2 * inner,
        x_proj=inner * (rank + 2 * state),
        dt_proj=rank * inner,
        out_proj=inner * hidden,
    )
    # The decay is in 32 bits.
    plain = inner * (kernel + 1) + inner + 2 * inner * state + inner
    states = (LayerState((kernel - 1) * inner, PLAIN_BYTES), recurrent_state(fields, inner * state))
    return LayerPart(found, plain, cached=(CachedLayers(1, "state", states=states),))


def _rank(fields: ConfigFields, hidden: int) -> int:
    """Return the rank of the time step; ``auto`` is a value per 16 of the hidden size."""
    name = "mamba_dt_rank" if fields.has("mamba_dt_rank") else "time_step_rank"
    if not fields.has(name) or fields.value(name) == "auto":
        return math.ceil(hidden / 16)
    return fields.number(name)


def mamba2(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return a layer of Mamba 2 (``mamba_mixer2.py`` of vLLM 0.31.0)."""
    del kind, index
    hidden = fields.number("hidden_size")
    own = architecture.pattern == "state"
    given = fields.value("mamba_d_head")
    heads = fields.number("mamba_num_heads", "mamba_n_heads", *(("num_heads",) if own else ()))
    size = fields.number(
        "mamba_head_dim",
        *(() if given == "auto" else ("mamba_d_head",)),
        *(("head_dim",) if own else ()),
        default=_head_size(fields, hidden, heads),
    )
    groups = fields.number("mamba_n_groups", "n_groups", default=1)
    state = fields.number("ssm_state_size", "mamba_d_state", "state_size", default=128)
    kernel = fields.number("conv_kernel", "mamba_d_conv", default=4)
    inner, shared = heads * size, 2 * groups * state
    path = architecture.state_path
    found = matrices(path, in_proj=hidden * (2 * inner + heads), out_proj=inner * hidden)
    # Devices beyond the number of groups hold a copy, as of the state.
    found += (WeightModule(f"{path}.in_proj", hidden * shared, parts=groups),)
    plain = (inner + shared) * (kernel + 1) + inner + 4 * heads
    whole = shared * (kernel + 1) if groups == 1 else 0
    states = (
        LayerState(
            (kernel - 1) * inner,
            PLAIN_BYTES,
            groups=groups,
            group_values=2 * (kernel - 1) * state,
            columns=kernel - 1,
        ),
        recurrent_state(fields, inner * state),
    )
    return LayerPart(found, plain, whole, (CachedLayers(1, "state", states=states),))


def _head_size(fields: ConfigFields, hidden: int, heads: int) -> int:
    """Return the size of a head that the file leaves out (``mamba_d_head: auto``)."""
    expanded = hidden * fields.number("mamba_expand", "expand", default=2)
    return max(1, fields.number("mamba_d_ssm", default=expanded) // heads)
