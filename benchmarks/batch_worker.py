"""The batch worker: how close it gets to the limit of its endpoint, and its processor time per request.

`_little` is the duration of a run against an endpoint that takes 500 ms, with 512 requests in flight. The
first and the last tenth of the requests are left out, because 512 requests start at the same moment. The
baseline is the duration by Little's law. The goal is 98 % of that rate.

`_processor` is the worker's processor time per request, from the queue to the committed parts. The baselines
process the same lines with the same endpoint in the same run. They are a bare aiohttp loop without any
guarantees (the goal is 0.7 of its requests per core-second), and Ray Data's HTTP request processor (the goal
is twice its requests per core-second). Two programs are not measured: llm-d's batch gateway, a Go program
whose module is not available here, and vLLM's `run-batch`, which runs its own engine. The times of the worker
and of the bare loop count from when they are ready. Until 2026-11-28, the start of the bare loop, 0.34 s,
counted too, which made the ratio smaller: without it, it was about 1.27.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.harness.batch.stage import Stage, check_lives, endpoint, shard_lines, stage, statistics
from benchmarks.harness.figure import ROOT, Figure, interleaved_medians, run
from inference_contracts.units import MICROSECONDS_PER_SECOND

_IN_FLIGHT, _ENDPOINT_SECONDS = 512, 0.5
_LITTLE_SHARDS, _LITTLE_LINES = 8, 7_680
_MIDDLE = 0.8
_GOAL_LITTLE = 1 / 0.98

_SHARDS, _LINES, _ROUNDS = 4, 5_000, 3
_QUICK_SECONDS, _QUICK_IN_FLIGHT = 0.01, 64
_GOAL_BARE = 1 / 0.7
_GOAL_RAY = 1 / 2
_RAY = ("ray[data]==2.60.0", "pydantic==2.13.5", "aiohttp==3.14.5", "psutil==7.2.2")


def measure() -> list[Figure]:
    """Take the measurements."""
    with tempfile.TemporaryDirectory() as directory:
        return [_little(Path(directory)), *_processor(Path(directory))]


def _little(directory: Path) -> Figure:
    requests = _LITTLE_SHARDS * _LITTLE_LINES
    with (
        endpoint(_ENDPOINT_SECONDS) as address,
        stage(directory / "little", _LITTLE_SHARDS, _LITTLE_LINES) as job,
    ):
        _processor_seconds(job, address, _IN_FLIGHT)
        taken = statistics(address)["middleSeconds"]
    bound = requests * _MIDDLE / _IN_FLIGHT * _ENDPOINT_SECONDS
    return Figure("batch_worker_little", taken, "s", baseline=bound, goal=_GOAL_LITTLE)


def _processor(directory: Path) -> list[Figure]:
    file = directory / "lines.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for shard in range(_SHARDS):
            lines.writelines(line.to_json() + "\n" for line in shard_lines(_LINES, shard))
    ray = _ray_environment(directory)
    with endpoint(_QUICK_SECONDS) as address:

        def worker() -> float:
            # One stage per round, because a completed job does not run again.
            with stage(directory / f"round-{time.monotonic_ns()}", _SHARDS, _LINES) as job:
                return _processor_seconds(job, address, _QUICK_IN_FLIGHT)

        def bare() -> float:
            program = [sys.executable, "-m", "benchmarks.harness.batch.bare_loop"]
            return float(run([*program, file, address, str(_QUICK_IN_FLIGHT)]))

        def ray_data() -> float:
            program = ROOT / "benchmarks" / "harness" / "batch" / "ray_data.py"
            output = directory / f"ray-{time.monotonic_ns()}"
            return float(run([ray, program, file, address, output]).splitlines()[-1])

        measures: list[Callable[[], float]] = [worker, bare, ray_data]
        ours, loop, rays = (
            seconds / (_SHARDS * _LINES) * MICROSECONDS_PER_SECOND
            for seconds in interleaved_medians(measures, _ROUNDS)
        )
    return [
        Figure("batch_worker_processor beside a bare loop", ours, "us", baseline=loop, goal=_GOAL_BARE),
        Figure("batch_worker_processor beside Ray Data", ours, "us", baseline=rays, goal=_GOAL_RAY),
    ]


def _processor_seconds(job: Stage, address: str, in_flight: int) -> float:
    """Run a job on one worker and return its processor seconds from the time that it is ready."""
    settings = {"BATCH_IN_FLIGHT_START": str(in_flight), "BATCH_IN_FLIGHT_MOST": str(in_flight)}
    process = job.start_worker(address, settings)
    try:
        watched = psutil.Process(process.pid)
        while not _is_ready(job):
            check_lives(process)
            time.sleep(0.05)
        begin = sum(watched.cpu_times()[:2])
        execution = job.submit()
        while job.is_running(execution):
            check_lives(process)
            time.sleep(0.2)
        return float(sum(watched.cpu_times()[:2]) - begin)
    finally:
        process.kill()
        process.wait()


def _is_ready(job: Stage) -> bool:
    """Return whether a worker polls the queue."""
    return any('"started"' in path.read_text() for path in job.directory.glob("worker-*.log"))


def _ray_environment(directory: Path) -> Path:
    """Create a virtual environment with Ray and return its Python."""
    uv, place = ROOT / ".venv" / "bin" / "uv", directory / "ray-environment"
    run([uv, "venv", "--quiet", "--python", sys.executable, place])
    run([uv, "pip", "install", "--quiet", "--python", place / "bin" / "python", *_RAY])
    return place / "bin" / "python"
