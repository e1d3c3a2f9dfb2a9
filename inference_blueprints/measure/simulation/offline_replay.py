"""Dynamo's offline replay: its router and simulated engines on a virtual clock, without processes.

All results are simulated. The transfer of KV cache between roles takes its bytes divided by the workers'
share
of the network bandwidth. Contention between transfers is not modelled (``dynamo.replay`` of ai-dynamo 1.6.1).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from inference_blueprints.measure.simulation.simulated_workers import (
    SimulatedWorkers,
    scheduler_of,
    write_profile,
)
from inference_blueprints.spec.types import LatencyKind, next_percentile
from inference_contracts.records import dataclass
from inference_contracts.units import GB

_MS = 1000.0
#: What the replay imports. Dynamo's wheels require releases that no registry has, so it is no dependency.
_IMPORTED = ("dynamo", "numpy", "msgspec", "packaging", "yaml")
#: The simulator's engine for each of our engines.
_WORKER_TYPES = {"worker": "aggregated", "prefill": "prefill", "decode": "decode"}


@dataclass(frozen=True, slots=True)
class SyntheticLoad:
    """Similar requests at random times."""

    input_tokens: int
    output_tokens: int
    shared_prefix_ratio: float = 0.0
    """Share of the prompt that the requests of a group have in common."""
    prefix_groups: int = 1


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded request."""

    arrival_seconds: float
    """Arrival time, from the first request."""
    input_tokens: int
    output_tokens: int
    """`input_tokens`, `output_tokens`: Length of its prompt and of its answer."""
    block_ids: tuple[int, ...]
    """Its prompt in blocks. The last may be shorter. Equal ids mean equal content."""

    @property
    def tokens(self) -> int:
        """Length of prompt and answer together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Latencies:
    """Simulated percentiles of one latency, in milliseconds."""

    p50: float
    p90: float
    p95: float
    p99: float
    longest: float

    def at(self, percentile: float) -> float:
        """Return a percentile; between two known ones, the higher of them."""
        return next_percentile(self.known, percentile)

    @property
    def known(self) -> Mapping[float, float]:
        """The values by percentile."""
        return {50.0: self.p50, 90.0: self.p90, 95.0: self.p95, 99.0: self.p99, 100.0: self.longest}


@dataclass(frozen=True, slots=True)
class SimulatedReplay:
    """Simulated results of the requests."""

    time_to_first_token: Latencies
    time_per_output_token: Latencies
    end_to_end: Latencies
    """`time_to_first_token`, `time_per_output_token`, `end_to_end`: Latencies of the requests."""
    requests_per_second: float
    """Completed requests divided by the duration of the replay, including its end."""
    cached_ratio: float
    """Share of the prompt tokens that were in a cache."""

    def percentile_ms(self, kind: LatencyKind, percentile: float) -> float:
        """Return a percentile of a latency, in milliseconds."""
        return self.latencies[kind].at(percentile)

    @property
    def latencies(self) -> Mapping[LatencyKind, Latencies]:
        """Its latencies by kind."""
        return {
            "timeToFirstTokenMs": self.time_to_first_token,
            "timePerOutputTokenMs": self.time_per_output_token,
            "requestMs": self.end_to_end,
        }


class MissingProfileError(LookupError):
    """A worker has no latency profile, so it cannot be simulated."""


def replay_synthetic(
    workers: Sequence[SimulatedWorkers],
    load: SyntheticLoad,
    requests_per_second: float,
    requests: int,
    *,
    router: Literal["kv_router", "round_robin"] = "kv_router",
    seed: int = 0,
) -> SimulatedReplay:
    """Replay requests at a rate against the workers of a deployment.

    workers: Aggregated workers, or prefill and decode workers.
    requests_per_second: Mean rate; arrivals are random.
    router: Router that distributes the requests.
    Raises MissingProfileError if a worker has no latency profile.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = replay_api().run_synthetic_trace_replay(
            load.input_tokens,
            load.output_tokens,
            requests,
            request_rate=requests_per_second,
            arrival_seed=seed,
            shared_prefix_ratio=load.shared_prefix_ratio,
            num_prefix_groups=load.prefix_groups,
            router_mode=router,
            **engine_options(workers, Path(folder)),
        )
    return result_of(report.summary)


def replay_recorded(
    workers: Sequence[SimulatedWorkers],
    requests: Sequence[RecordedRequest],
    block_tokens: int,
    *,
    router: Literal["kv_router", "round_robin"] = "kv_router",
) -> SimulatedReplay:
    """Replay recorded requests at their recorded times against the workers of a deployment.

    requests: In the order of arrival.
    block_tokens: Tokens per prompt block.
    Raises MissingProfileError if a worker has no latency profile.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        trace.write_text("".join(map(_record, requests)), encoding="utf-8")
        report = replay_api().run_trace_replay(
            str(trace),
            trace_block_size=block_tokens,
            router_mode=router,
            **engine_options(workers, Path(folder)),
        )
    return result_of(report.summary)


def _record(request: RecordedRequest) -> str:
    """Write a request as a line of a trace in Mooncake's format."""
    record = {
        "timestamp": request.arrival_seconds * _MS,
        "input_length": request.input_tokens,
        "output_length": request.output_tokens,
        "hash_ids": request.block_ids,
    }
    return json.dumps(record) + "\n"


def engine_options(workers: Sequence[SimulatedWorkers], folder: Path) -> dict[str, Any]:
    """Return the arguments of the replay that describe the workers.

    folder: Folder for latency profiles during the replay.
    Raises MissingProfileError if a worker has no latency profile.
    """
    options: dict[str, Any] = {}
    for each in workers:
        prefix = "" if each.role == "worker" else f"{each.role}_"
        arguments = "extra_engine_args" if each.role == "worker" else f"{prefix}engine_args"
        options |= {arguments: _engine(each, folder), f"num_{prefix}workers": each.replicas}
    return options


def result_of(summary: Mapping[str, float]) -> SimulatedReplay:
    """Read the summary of a replay."""
    return SimulatedReplay(
        time_to_first_token=_latencies(summary, "ttft_ms"),
        time_per_output_token=_latencies(summary, "tpot_ms"),
        end_to_end=_latencies(summary, "e2e_latency_ms"),
        requests_per_second=summary["request_throughput_rps"],
        cached_ratio=summary["prefix_cache_reused_ratio"],
    )


def _latencies(summary: Mapping[str, float], name: str) -> Latencies:
    return Latencies(*(summary[f"{each}_{name}"] for each in ("median", "p90", "p95", "p99", "max")))


def _engine(workers: SimulatedWorkers, folder: Path) -> Any:
    """Return the launch configuration of one simulated engine."""
    profile, settings = workers.profile, workers.settings
    if profile is None:
        raise MissingProfileError(
            f"{workers.role}: no latency profile for {settings.tensor_parallel_size} devices"
        )
    scheduler = scheduler_of(settings)
    engine: dict[str, Any] = {
        "backend": scheduler.name,
        "worker_type": _WORKER_TYPES[workers.role],
        "block_size": settings.block_size,
        "num_gpu_blocks": settings.kv_blocks,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "timing_model": {
            "type": "external",
            "provider": "dynamo_profile",
            "config": {"path": str(write_profile(profile, folder / f"{workers.role}.npz"))},
        },
    }
    if scheduler.settings:
        engine[scheduler.name] = dict(scheduler.settings)
    if scheduler.host_blocks:
        engine["native_host_offload"] = {"num_host_blocks": scheduler.host_blocks}
        engine["kv_cache_bytes_per_token"] = workers.kv_bytes_per_token
    if workers.transfer_bytes_per_second is not None:
        engine["kv_transfer_bytes_per_token"] = workers.kv_bytes_per_token
        engine["kv_transfer_bandwidth"] = workers.transfer_bytes_per_second / GB
    configuration = import_module("dynamo.mocker.config")
    return configuration.normalize_mocker_config({"engine": engine, "dynamo": {}})


def replay_is_installed() -> bool:
    """Return whether this process can import Dynamo's replay."""
    return all(find_spec(name) is not None for name in _IMPORTED)


def replay_api() -> Any:
    """Return Dynamo's module. Its logging of every step is turned off before the import."""
    os.environ.setdefault("DYN_LOG", "error")
    return import_module("dynamo.replay")
