"""Bytes per weight of quantised checkpoints, by the settings in ``quantization_config``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from inference_catalog.configurations.config_fields import ConfigFields
from inference_contracts.records import dataclass

WeightType = Literal["bf16", "fp8", "int8", "mxfp4", "int4", "nvfp4", "gguf"]

_MAX_BITS = 8
_SCALE_BYTES = 2
_INTEGERS: Mapping[int, WeightType] = MappingProxyType({4: "int4", 8: "int8"})


@dataclass(frozen=True, slots=True)
class WeightScheme:
    """How one kind of weight is stored."""

    weight_type: WeightType
    """Name of the type."""
    bytes_per_weight: float
    """Bytes per weight, with scales and zero points."""
    block: int = 0
    """Weights along the split dimension that share a scale, so that a device holds whole blocks; 0 if any
    split works."""


PLAIN = WeightScheme("bf16", 2.0)

MXFP4 = WeightScheme("mxfp4", 4.25 / 8)
"""A byte of scale per 32 weights (OCP Microscaling Formats, version 1.0). Kernels pad what a device holds."""

_FP8 = WeightScheme("fp8", 1.0)

#: ModelOpt's names (``hf_quant_config.json``; NVIDIA Model Optimizer documentation, "PyTorch Quantization").
_MODELOPT: Mapping[str, WeightScheme] = MappingProxyType(
    {
        "FP8": _FP8,
        "FP8_PER_CHANNEL_PER_TOKEN": _FP8,
        "FP8_PB_WO": WeightScheme("fp8", 1 + 4 / 128**2, 128),
        "MXFP8": WeightScheme("fp8", 1 + 1 / 32, 32),
        "NVFP4": WeightScheme("nvfp4", 0.5 + 1 / 16, 16),
        "W4A16_NVFP4": WeightScheme("nvfp4", 0.5 + 1 / 16, 16),
    }
)

#: How repositories store quantised weights, by the names of the blueprint. Integers of 4 bits have a scale
#: and a zero point per 128 weights, as AWQ and GPTQ publish them.
STORED_TYPES: Mapping[str, WeightScheme] = MappingProxyType(
    {
        "fp8": _FP8,
        "fp8Blocks": _MODELOPT["FP8_PB_WO"],
        "int8": WeightScheme("int8", 1.0),
        "int4": WeightScheme("int4", 0.5 + 2.5 / 128, 128),
        "nvfp4": _MODELOPT["NVFP4"],
    }
)


def modelopt_scheme(fields: ConfigFields, name: str) -> WeightScheme:
    """Return the scheme of one of ModelOpt's algorithms, such as ``NVFP4``."""
    algorithm = fields.value(name)
    if not isinstance(algorithm, str) or algorithm not in _MODELOPT:
        fields.wrong(name, f"one of {', '.join(_MODELOPT)}")
        return PLAIN
    return _MODELOPT[algorithm]


def fp8_scheme(fields: ConfigFields, name: str = "weight_block_size") -> WeightScheme:
    """Return the scheme of FP8 weights: one scale per block, or one per tensor or channel."""
    match fields.items(name, int):
        case []:
            return _FP8
        case [int(rows), int(columns)] if rows > 0 and columns > 0:
            return WeightScheme("fp8", 1 + 4 / (rows * columns), max(rows, columns))
        case _:
            fields.wrong(name, "a list of two whole numbers above 0")
            return _FP8


def packed_scheme(fields: ConfigFields, *, has_zero_points: bool) -> WeightScheme:
    """Return the scheme of AWQ and GPTQ: packed integers with a scale per group."""
    bits = fields.number("bits", "w_bit", maximum=_MAX_BITS)
    if bits not in _INTEGERS:
        fields.wrong("bits", "4 or 8")
        return PLAIN
    if fields.value("group_size" if fields.has("group_size") else "q_group_size") == -1:
        return _integers(bits, 0, has_zero_points=False)
    return _integers(bits, fields.number("group_size", "q_group_size"), has_zero_points=has_zero_points)


def compressed_scheme(fields: ConfigFields) -> WeightScheme:
    """Return the scheme of ``weights`` in a group of compressed-tensors."""
    bits = fields.number("num_bits", maximum=_MAX_BITS)
    kind = fields.value("type")
    group = 0 if fields.value("group_size") in (None, -1) else fields.number("group_size")
    match kind, bits, group:
        case "float", 8, 32:
            return _MODELOPT["MXFP8"]
        case "float", 8, _:
            return fp8_scheme(fields, "block_structure")
        case "float", 4, 16:
            return _MODELOPT["NVFP4"]
        case "float", 4, 32:
            return MXFP4
        case ((None | "int"), (4 | 8), _):
            return _integers(bits, group, has_zero_points=fields.value("symmetric") is False)
        case _:
            fields.report(
                f"got {bits} bits of type {str(kind)[:20]!r} in groups of {group or 'any size'}; counted are "
                "integers of 4 and 8 bits, floats of 8 bits, and floats of 4 bits in groups of 16 (NVFP4) or "
                "32 (MXFP4)"
            )
            return PLAIN


def _integers(bits: int, group: int, *, has_zero_points: bool) -> WeightScheme:
    scales = _SCALE_BYTES / group if group else 0.0
    zero_points = bits / 8 / group if group and has_zero_points else 0.0
    return WeightScheme(_INTEGERS[bits], bits / 8 + scales + zero_points, group)
