"""The sizes of a worker, independent of its engine."""

from __future__ import annotations

from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class Sizing:
    """Lengths, batch sizes and KV cache of one worker, or of each of its data parallel ranks."""

    block_size: int
    """Tokens per KV cache block."""
    max_model_len: int
    """Most tokens of prompt plus answer."""
    max_num_seqs: int
    """Most sequences that run at once."""
    max_num_batched_tokens: int
    """Tokens of one step."""
    memory_share: float
    """The engine's share of the device's memory, as the engine defines it: 0 to 1."""
    kv_tokens: int
    """Tokens that fit the KV cache on the devices."""
    host_kv_tokens: int = 0
    """Tokens of KV cache that fit the memory of the node."""
    nvme_kv_tokens: int = 0
    """Tokens of KV cache that fit the node's NVMe."""

    @property
    def kv_blocks(self) -> int:
        """Number of whole KV cache blocks on the devices."""
        return self.kv_tokens // self.block_size

    @property
    def host_kv_blocks(self) -> int:
        """Number of whole KV cache blocks in the memory of the node."""
        return self.host_kv_tokens // self.block_size
