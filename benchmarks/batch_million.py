"""A million requests through the worker's real code, while workers are killed at random.

Two workers process 50 shards of 20,000 lines with an endpoint that takes 10 ms. At five random moments, the
second worker is killed with SIGKILL and another one is started; the first one lives to the end. `_lost` and
`_doubled` count the lines that are missing from the output and error files, or in them twice. `_sent_again`
is the share of requests beyond the million, in percent. `_seconds` is the duration of the run.

`_memory` is the maximum resident memory of the worker that is not killed, in the last tenth of the run; the
baseline is that of the second tenth. Of some hundred thousand lines, 30 bytes of each that stay would miss
the goal. Until 2026-11-28 both workers were killed and halves were compared, and a new worker begins small:
that could hardly fail.
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
    tenth = len(memory) // 10
    again = (sent - total) / total * 100
    return [
        Figure("batch_million_lost", lost, "lines", goal=0),
        Figure("batch_million_doubled", doubled, "lines", goal=0),
        Figure("batch_million_sent_again", again, "%", goal=_GOAL_AGAIN_PERCENT),
        Figure(
            "batch_million_memory",
            max(memory[-tenth:]) / MIB,
            "MiB",
            baseline=max(memory[tenth : 2 * tenth]) / MIB,
            goal=_GOAL_MEMORY,
        ),
        Figure("batch_million_seconds", seconds, "s"),
    ]


def _memory_of_workers(job: Stage, address: str) -> Iterator[int]:
    """Run a job, kill all workers but the first, and yield the memory of the first periodically."""
    chance = random.Random(1)  # noqa: S311 - moments, not keys
    workers: list[subprocess.Popen[bytes]] = [job.start_worker(address, _SETTINGS) for _ in range(_WORKERS)]
    execution, kills = job.submit(), 0
    next_kill = time.monotonic() + chance.uniform(*_KILLED_EVERY_SECONDS)
    try:
        while job.is_running(execution):
            time.sleep(0.5)
            check_lives(*workers)
            yield psutil.Process(workers[0].pid).memory_info().rss
            if kills < _KILLS and time.monotonic() > next_kill:
                victim = chance.randrange(1, _WORKERS)
                workers[victim].kill()
                workers[victim].wait()
                workers[victim] = job.start_worker(address, _SETTINGS)
                kills += 1
                next_kill = time.monotonic() + chance.uniform(*_KILLED_EVERY_SECONDS)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
