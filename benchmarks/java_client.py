"""The Java client beside openai-java and the bare client of the JDK: latency and processor time per request.

An endpoint on this machine answers each chat completion after 50 ms. A Java program calls it through one
of the clients, in a fresh JVM that warms up for 8 s and is measured for 6 s, in two loops. In the closed
loop, 64 callers send their next request when the former one is answered. In the open loop, a latency
counts from when the request was due. All clients get the same rate there, `open_rate`: half of what
openai-java, the slowest, completes in the closed loop before the rounds, at most 500 per second. A round
in which a client still falls behind (a p50 above twice the endpoint's time) measures this machine, and is
repeated.

openai-java is tuned: it may keep 1,024 idle connections instead of 5. The JDK's client is given the least
code that asks and reads an answer, without deadlines for bodies, retries, limits or a circuit breaker.

The three take turns, ten rounds each. A figure is the median, over the rounds, of what our client takes
divided by what the other takes in the same round, so that one round beside other work moves nothing.
`_lower` and `_upper` are the second and the ninth of the ten ratios, between which the median is with
97.9 % (the sign test). The goals are a ratio below 1 beside openai-java, and at most 1.1 beside the JDK's
client. They apply to the upper ends. Where the interval contains the goal, the comparison is
inconclusive: the name then ends with `_inconclusive`. `_ms` and `_cpu_us` are the medians of our client.
The endpoint runs on the same cores.

It needs Java 17 and Maven, and takes 16 minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from benchmarks.harness.figure import ROOT, ROUNDS, BenchmarkError, Figure, run

_ANSWER_SECONDS, _WARM_SECONDS, _SECONDS = 0.05, 8, 6
#: What its processes run.
PROGRAMS = ("runtime/java",)
_LOADS: Final = ("open", "closed")
_CALLERS: Final = 64
#: The share of what the slowest client completes in the closed loop that the open loop has, and its maximum.
_OPEN_SHARE, _MOST_RATE = 0.5, 500
#: A client whose p50 is above this many times the endpoint's falls behind.
_BEHIND: Final = 2.0
_ATTEMPTS: Final = 3
_CLIENTS: Final = ("ours", "openai", "jdk")
_GOALS: Final = {"openai": 1.0, "jdk": 1.1}
_METRICS: Final = {"p50Ms": "p50", "p99Ms": "p99", "cpuMicros": "cpu"}
_JAVA: Final = ROOT / "runtime" / "java"
_MODULE: Final = _JAVA / "client-benchmark"

Run = dict[str, float]


def measure() -> list[Figure]:
    """Take the measurements."""
    command = _built()
    runs: dict[tuple[str, str], list[Run]] = {(load, client): [] for load in _LOADS for client in _CLIENTS}
    with _endpoint() as address:
        rate = _open_rate(command, address)
        for number in range(ROUNDS):
            # Each client is as often first as the others.
            order = _CLIENTS[number % 3 :] + _CLIENTS[: number % 3]
            for load in _LOADS:
                for client, found in _round(command, order, load, rate, address).items():
                    runs[load, client].append(found)
    return [
        Figure("java_client_open_rate", rate, "requests per second"),
        *(
            figure
            for load in _LOADS
            for figure in _figures(load, {each: runs[load, each] for each in _CLIENTS})
        ),
    ]


def _open_rate(command: Sequence[str], address: str) -> int:
    """Return a rate that the slowest client completes with half of its time left."""
    most = _run(command, "openai", "closed", _CALLERS, address)["requests"] / _SECONDS
    rate = min(_MOST_RATE, int(_OPEN_SHARE * most))
    if rate < _CALLERS:
        raise BenchmarkError(
            f"openai-java completes {most:.0f} requests per second: this machine is too busy"
        )
    return rate


def _round(
    command: Sequence[str], order: Sequence[str], load: str, rate: int, address: str
) -> dict[str, Run]:
    """Run each client once, again if one of them fell behind in the open loop."""
    amount = rate if load == "open" else _CALLERS
    for _ in range(_ATTEMPTS):
        found = {client: _run(command, client, load, amount, address) for client in order}
        slowest = max(each["p50Ms"] for each in found.values())
        if load == "closed" or slowest <= _BEHIND * _ANSWER_SECONDS * 1000:
            return found
    raise BenchmarkError(
        f"a client has a p50 of {slowest:.0f} ms at {rate} requests per second: this machine is too busy"
    )


def _built() -> list[str]:
    """Build the program, and return the command that starts it."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if not (java and maven):
        raise BenchmarkError("Java 17 and Maven 3.8 or newer are needed")
    build = ("--batch-mode", "--quiet", "--file", str(_JAVA), "-Pbenchmark", "-DskipTests")
    run([maven, *build, "--projects", "client-benchmark", "--also-make", "process-test-classes"])
    libraries = (_MODULE / "target" / "class-path").read_text(encoding="utf-8").strip()
    path = os.pathsep.join([str(_MODULE / "target" / "classes"), libraries])
    return [java, "-Xmx1g", "-cp", path, "inferenceblueprints.benchmark.ClientLoad"]


@contextmanager
def _endpoint() -> Iterator[str]:
    """Run an endpoint and yield its address."""
    command = [sys.executable, "-m", "benchmarks.harness.batch.fast_endpoint", str(_ANSWER_SECONDS)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield (process.stdout or sys.stdin).readline().strip()
    finally:
        process.kill()
        process.communicate()


def _run(command: Sequence[str], client: str, load: str, amount: int, address: str) -> Run:
    """Load the endpoint once through a client."""
    settings = (client, load, str(amount), address, str(_WARM_SECONDS), str(_SECONDS))
    result = json.loads(run([*command, *settings]))
    if not result["requests"]:
        raise BenchmarkError(
            f"{client}, {load}: no request was answered in {_SECONDS} s; is the machine busy?"
        )
    if result["failures"]:
        raise BenchmarkError(f"{client}, {load}: {result['failures']} requests failed: {result['failure']}")
    return {name: float(result[name]) for name in ("requests", *_METRICS)}


def _figures(load: str, runs: dict[str, list[Run]]) -> Iterator[Figure]:
    """Return the figures of a load."""
    for metric, short in _METRICS.items():
        name, unit = f"java_client_{load}_{short}", "us" if metric == "cpuMicros" else "ms"
        yield Figure(f"{name}_{unit}", statistics.median(each[metric] for each in runs["ours"]), unit)
        for other, goal in _GOALS.items():
            pairs = zip(runs["ours"], runs[other], strict=True)
            ratios = sorted(ours[metric] / theirs[metric] for ours, theirs in pairs)
            lower, middle, upper = ratios[1], statistics.median(ratios), ratios[-2]
            words = f"of {'openai-java' if other == 'openai' else 'the JDK client'}"
            # The goals are about p99 and processor time; a median is mostly the endpoint's 50 ms.
            bound = None if short == "p50" and other == "openai" else goal
            doubtful = "_inconclusive" if bound is not None and lower <= bound < upper else ""
            yield Figure(f"{name}_{other}_lower", lower, words)
            yield Figure(f"{name}_{other}{doubtful}", middle, words)
            yield Figure(f"{name}_{other}_upper", upper, words, goal=bound)
