"""The figures behind a worker, whatever its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

#: Where a worker tells of its KV cache. Engines bind where the host is "*"; Dynamo's publisher in the same
#: pod connects to it on loopback.
KV_EVENTS: Mapping[str, str] = MappingProxyType(
    {"publisher": "zmq", "topic": "kv-events", "endpoint": "tcp://*:20080"}
)


@dataclass(frozen=True, slots=True)
class Sizing:
    """Lengths, batch sizes and KV cache of one worker, or of each of its data parallel ranks.

    Parameters
    ----------
    block_size
        KV cache block in tokens.
    max_model_len
        Prompt and answer together at the most, in tokens.
    max_num_seqs
        Sequences that run at once.
    max_num_batched_tokens
        Tokens of one step.
    memory_share
        The engine's share of the device's memory, by its own reckoning: 0 to 1.
    kv_tokens
        Tokens of KV cache that fit.
    host_kv_tokens
        Tokens of it that are kept in the memory of the node.
    nvme_kv_tokens
        Tokens of it that are kept on the node's NVMe.
    """

    block_size: int
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    memory_share: float
    kv_tokens: int
    host_kv_tokens: int = 0
    nvme_kv_tokens: int = 0

    @property
    def kv_blocks(self) -> int:
        """Whole KV cache blocks that fit."""
        return self.kv_tokens // self.block_size

    @property
    def host_kv_blocks(self) -> int:
        """Whole blocks of it that are kept in the memory of the node."""
        return self.host_kv_tokens // self.block_size
