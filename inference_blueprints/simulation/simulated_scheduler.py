"""How the simulated engine schedules: as the engine that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import EngineSettings


@dataclass(frozen=True, slots=True)
class SimulatedScheduler:
    """One of the simulator's schedulers.

    Parameters
    ----------
    name
        The simulator's word for it, such as ``sglang``.
    settings
        What only this scheduler knows, by the simulator's names.
    host_blocks
        Blocks of KV cache in the memory of the node.
    """

    name: str
    settings: Mapping[str, int]
    host_blocks: int = 0


def scheduler_of(engine: EngineSettings) -> SimulatedScheduler:
    """Return the scheduler that stands for an engine (``dynamo.mocker`` of ai-dynamo 1.6.1).

    Parameters
    ----------
    engine
        The figures behind a worker's arguments.
    """
    name = STACKS["dynamo"].frameworks[engine.engine]
    # SGLang splits prompts into chunks of so many tokens; others fill a step with what it holds.
    own = {"chunked_prefill_size": engine.max_num_batched_tokens} if name == "sglang" else {}
    # Only vLLM's way of keeping blocks in the node's memory is simulated.
    return SimulatedScheduler(name, own, host_blocks=engine.host_kv_blocks if name == "vllm" else 0)
