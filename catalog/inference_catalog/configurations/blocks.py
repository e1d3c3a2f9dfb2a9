"""Layers of which each has sizes of its own, or misses a part: ``block_configs`` of Nemotron-NAS.

The rules are those of ``models/nemotron_nas.py`` of vLLM 0.31.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from inference_catalog.configurations.config_fields import ConfigFields
from inference_contracts.records import dataclass

NAME = "block_configs"
#: The width of a layer is rounded up to a multiple of this.
_MULTIPLE = 256
_MAX_FACTOR = 1000


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Sizes of one layer; 0 for a part that it does not have."""

    kv_heads: int = 0
    width: int = 0


def read_blocks(fields: ConfigFields) -> tuple[BlockSizes, ...]:
    """Return the sizes of each layer; empty without the field. Problems are added to the fields.

    Parameters
    ----------
    fields
        The language model's fields.
    """
    given = fields.value(NAME)
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        fields.wrong(NAME, "a list of objects, one per layer")
        return ()
    sizes = fields.number("num_attention_heads"), fields.number("hidden_size")
    return tuple(_block(each, sizes, f"{NAME}[{index}].", fields) for index, each in enumerate(given))


def _block(
    given: Mapping[str, object], sizes: tuple[int, int], place: str, fields: ConfigFields
) -> BlockSizes:
    queries, hidden = sizes
    own = ConfigFields(given, place, fields.problems)
    attention, network = own.section("attention"), own.section("ffn")
    if attention is None or network is None:
        own.report("must have 'attention' and 'ffn'")
        return BlockSizes()
    for part in (attention, network):
        if part.flag("replace_with_linear"):
            part.report("'replace_with_linear' is not counted: vLLM 0.31.0 has no such layer")
    group = 0 if attention.flag("no_op") else attention.number("n_heads_in_group", maximum=queries)
    return BlockSizes(queries // group if group else 0, _width(network, hidden))


def _width(network: ConfigFields, hidden: int) -> int:
    if network.flag("no_op"):
        return 0
    factor = network.value("ffn_mult")
    if factor is None:
        return network.number("intermediate_size")
    if not isinstance(factor, int | float) or isinstance(factor, bool) or not 0 < factor <= _MAX_FACTOR:
        network.wrong("ffn_mult", f"a number above 0, at most {_MAX_FACTOR}")
        return 0
    return _MULTIPLE * math.ceil(int(2 * factor * hidden / 3) / _MULTIPLE)
