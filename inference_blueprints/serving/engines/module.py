"""What a module of this package provides, and an engine's own words for what the plan computes with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from inference_blueprints.catalog import Accelerator
from inference_blueprints.serving.arguments import Argument
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.memory import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnvironmentValue
from inference_blueprints.spec.types import ArgumentValue


@dataclass(frozen=True, slots=True)
class EngineWords:
    """An engine's names of arguments that a user may set and the plan computes with; without dashes.

    Parameters
    ----------
    length
        Tokens of the longest request, prompt and answer.
    sequences
        Sequences that run at once.
    step_tokens
        Tokens of one step.
    block_size
        Tokens of a block of the KV cache.
    memory_share
        The engine's share of the device's memory, by its own reckoning: above 0 and at most 1.
    kv_cache_type
        Type of the cached numbers.
    kv_cache_types
        Values of that argument whose size is known.
    without_prefix_cache
        Argument and value that switch the prefix cache off.
    stretched_context
        Argument that lets requests be longer than the model's published context.
    """

    length: str
    sequences: str
    step_tokens: str
    block_size: str
    memory_share: str
    kv_cache_type: str
    kv_cache_types: tuple[str, ...]
    without_prefix_cache: tuple[str, ArgumentValue]
    stretched_context: str | None

    @property
    def counts(self) -> tuple[str, ...]:
        """Arguments that are whole numbers above 0."""
        return (self.length, self.sequences, self.step_tokens, self.block_size)

    def figures(self, sizing: Sizing) -> dict[str, ArgumentValue]:
        """Return the arguments that say how a worker is sized, by name without dashes.

        Parameters
        ----------
        sizing
            A worker's figures.
        """
        return {
            self.block_size: sizing.block_size,
            self.length: sizing.max_model_len,
            self.sequences: sizing.max_num_seqs,
            self.step_tokens: sizing.max_num_batched_tokens,
            self.memory_share: sizing.memory_share,
        }


class EngineModule(Protocol):
    """What a module of this package provides."""

    #: Its names of arguments.
    WORDS: EngineWords

    #: Arguments that a user may not set, with what to set in the blueprint instead.
    OWNED_ARGUMENTS: Mapping[str, str]

    #: Tokens of a block of the KV cache where the user names none.
    BLOCK_SIZE: int

    #: Whether its image reads weights from S3.
    STREAMS_WEIGHTS: bool

    #: Whether a decode device may take its KV heads from several prefill devices.
    GATHERS_HEADS: bool

    #: Keys of ``kvCache`` that the plan sets it up for.
    KV_CACHE_TIERS: frozenset[str]

    #: Memory of the node that it insists on leaving free beside KV cache that it keeps there, in MiB.
    HOST_CACHE_RESERVE_MIB: int

    #: Roles whose workers may have several stages of layers where KV cache moves between the roles.
    STAGES_SEND_KV: frozenset[WorkerRole]

    #: Whether a worker may span nodes.
    SPANS_NODES: bool

    def step_tokens(self, accelerator: Accelerator) -> int:
        """Return the tokens of one step that the engine itself would choose for a device."""

    def memory_share(self, memory: MemoryEstimate, device_bytes: int) -> float:
        """Return the engine's own figure for a device that is filled as estimated."""

    def utilization(self, share: float, whole: MemoryEstimate) -> float:
        """Return the part of the device that is filled when the engine is given a figure of its own.

        `whole` is the estimate for a device that is filled to the last byte.
        """

    def kept_part(self, resolved: ResolvedWorkers) -> float:
        """Return how much of the memory and disk for KV cache holds tokens, each counted once."""

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        """Return a worker's arguments by name without dashes, the user's merged in."""

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        """Return a worker's environment as far as it is the engine's business."""
