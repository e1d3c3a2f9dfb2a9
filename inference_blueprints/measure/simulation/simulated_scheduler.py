"""Selects the simulator's scheduler that matches an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import EngineSettings


@dataclass(frozen=True, slots=True)
class SimulatedScheduler:
    """One of the simulator's schedulers."""

    name: str
    """The simulator's name, such as ``sglang``."""
    settings: Mapping[str, int]
    """Settings of this scheduler only, by the simulator's names."""
    host_blocks: int = 0
    """Blocks of KV cache in node memory."""


def scheduler_of(engine: EngineSettings) -> SimulatedScheduler:
    """Return the scheduler that matches an engine (``dynamo.mocker`` of ai-dynamo 1.6.1).

    engine: Settings of a worker's engine.
    """
    name = STACKS["dynamo"].frameworks[engine.engine]
    # SGLang splits prompts into chunks of this many tokens. Other engines fill a step up to its token limit.
    own = {"chunked_prefill_size": engine.max_num_batched_tokens} if name == "sglang" else {}
    # The simulator supports KV cache in node memory only for vLLM.
    return SimulatedScheduler(name, own, host_blocks=engine.host_kv_blocks if name == "vllm" else 0)
