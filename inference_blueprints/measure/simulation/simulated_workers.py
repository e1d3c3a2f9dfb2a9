"""The workers of a deployment as input for the simulated engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.estimates.cache_tiers import whole_kv_bytes_per_token
from inference_blueprints.serving.performance import ProfileFinder, speeds, transfer_bytes_per_second
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import EngineSettings, Process, Role
from inference_catalog import LatencyProfile
from inference_contracts.records import dataclass


def write_profile(profile: LatencyProfile, path: Path) -> Path:
    """Write the arrays of ``dynamo.mocker --planner-profile-data``.

    A worker that starts at the same time reads the whole file, because an existing one is replaced at once.
    The simulated engine draws a line on beyond the ends of its tables (`PerfModel::from_npz` of ai-dynamo
    1.6.1 asks for it), and its tables have no gaps. So steps that nobody measured follow such a line here.

    path: The file, which ends in ``.npz``.
    """
    draft = path.with_name(f"draft of {path.name}")
    numpy.savez(
        draft,
        prefill_isl=numpy.asarray(profile.prefill_isl, float),
        prefill_ttft_ms=numpy.asarray(profile.prefill_ttft_ms, float),
        decode_active_kv_tokens=numpy.asarray(profile.decode_active_kv_tokens, float),
        decode_context_length=numpy.asarray(profile.decode_context_length, float),
        decode_itl=numpy.asarray(_without_gaps(profile)),
    )
    draft.replace(path)
    return path


def _without_gaps(profile: LatencyProfile) -> list[list[float]]:
    """Return the decode table. Each column goes on from its last two values in a line."""
    axis = profile.decode_active_kv_tokens
    table: list[list[float]] = []
    for index, row in enumerate(profile.decode_itl):
        share = (axis[index] - axis[index - 1]) / (axis[index - 1] - axis[index - 2])
        table.append(
            [
                table[-1][column] + share * (table[-1][column] - table[-2][column])
                if value is None
                else value
                for column, value in enumerate(row)
            ]
        )
    return table


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


@dataclass(frozen=True, slots=True)
class SimulatedWorkers:
    """Workers of one role."""

    role: Role
    replicas: int
    settings: EngineSettings
    profile: LatencyProfile | None
    """Their latency profile. None if nothing was measured."""
    kv_bytes_per_token: int
    """KV cache of a token on all devices of a worker, without copies, as the plan's memory counts it: a mean
    over the tokens of a mean request, in bytes."""
    transfer_bytes_per_second: float | None
    """Transfer rate of KV cache between the roles. None for aggregated workers."""


def simulated_workers(
    roles: Sequence[ResolvedWorkers],
    processes: Sequence[Process],
    profile_of: ProfileFinder | None = None,
) -> tuple[SimulatedWorkers, ...]:
    """Return the workers of a deployment.

    roles: Resolved workers of each role.
    processes: Planned processes, in the same order.
    profile_of: Returns the latency profile. By default, that of the catalogue.
    Raises ValueError if a process has no engine.
    """
    find = profile_of or catalog.latency_profile
    rate = transfer_bytes_per_second(*roles) if len(roles) > 1 else None
    return tuple(_workers(role, process, rate, find) for role, process in zip(roles, processes, strict=True))


def _workers(
    resolved: ResolvedWorkers, process: Process, rate: float | None, profile_of: ProfileFinder
) -> SimulatedWorkers:
    if process.engine is None:
        raise ValueError(f"{process.name}: a worker has no engine")
    return SimulatedWorkers(
        role=process.role,
        replicas=process.maximum,
        settings=process.engine,
        profile=speeds(resolved, profile_of),
        kv_bytes_per_token=round(whole_kv_bytes_per_token(resolved, worker_memory(resolved))),
        transfer_bytes_per_second=rate,
    )
