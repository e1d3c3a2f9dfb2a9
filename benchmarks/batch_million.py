"""A million requests through the worker's real code, while workers are killed at random.

Two workers process 50 shards of 20,000 lines with an endpoint that takes 10 ms. At five random moments, one
of the workers is killed with SIGKILL and another one is started. `_lost` and `_doubled` count the lines that
are missing from the output and error files, or in them twice. `_sent_again` is the share of requests beyond
the million, in percent. `_memory` is the maximum resident memory of any worker in the last half of the run;
the baseline is that of the first half. `_seconds` is the duration of the run.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks.harness.batch.stage import Stage, check_lives, endpoint, stage, statistics
from benchmarks.harness.figure import Figure
from inference_contracts.units import MIB

_SHARDS, _LINES = 50, 20_000
_ENDPOINT_SECONDS = 0.01
_WORKERS, _KILLS = 2, 5
_KILLED_EVERY_SECONDS = (40.0, 80.0)
_GOAL_AGAIN_PERCENT, _GOAL_MEMORY = 1.0, 1.1
_SETTINGS = {
    "BATCH_IN_FLIGHT_START": "32",
    "BATCH_IN_FLIGHT_MOST": "64",
    "BATCH_HEARTBEAT_SECONDS": "5",
    "BATCH_VISIBILITY_SECONDS": "15",
}


def measure() -> list[Figure]:
    """Take the measurement."""
    total = _SHARDS * _LINES
    with (
        tempfile.TemporaryDirectory() as directory,
        endpoint(_ENDPOINT_SECONDS) as address,
        stage(Path(directory), _SHARDS, _LINES) as job,
    ):
        begin = time.monotonic()
        memory = list(_memory_of_workers(job, address))
        seconds = time.monotonic() - begin
        sent = statistics(address)["requests"]
        seen = bytearray(total)
        doubled = 0
        for number in job.custom_ids():
            doubled += seen[number]
            seen[number] = 1
        lost = total - sum(seen)
    half = len(memory) // 2
    again = (sent - total) / total * 100
    return [
        Figure("batch_million_lost", lost, "lines", goal=0),
        Figure("batch_million_doubled", doubled, "lines", goal=0),
        Figure("batch_million_sent_again", again, "%", goal=_GOAL_AGAIN_PERCENT),
        Figure(
            "batch_million_memory",
            max(memory[half:]) / MIB,
            "MiB",
            baseline=max(memory[:half]) / MIB,
            goal=_GOAL_MEMORY,
        ),
        Figure("batch_million_seconds", seconds, "s"),
    ]


def _memory_of_workers(job: Stage, address: str) -> Iterator[int]:
    """Run a job, kill workers, and yield the memory of the largest worker periodically."""
    chance = random.Random(1)  # noqa: S311 - moments, not keys
    workers: list[subprocess.Popen[bytes]] = [job.start_worker(address, _SETTINGS) for _ in range(_WORKERS)]
    execution, kills = job.submit(), 0
    next_kill = time.monotonic() + chance.uniform(*_KILLED_EVERY_SECONDS)
    try:
        while job.is_running(execution):
            time.sleep(0.5)
            check_lives(*workers)
            yield max(psutil.Process(worker.pid).memory_info().rss for worker in workers)
            if kills < _KILLS and time.monotonic() > next_kill:
                victim = chance.randrange(_WORKERS)
                workers[victim].kill()
                workers[victim].wait()
                workers[victim] = job.start_worker(address, _SETTINGS)
                kills += 1
                next_kill = time.monotonic() + chance.uniform(*_KILLED_EVERY_SECONDS)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
