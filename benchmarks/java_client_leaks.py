"""A million calls of the Java client leave no connection, thread or buffer behind.

The test of 100,000 calls that `make test-java` runs, with ten times as many. Of the answers, one in sixty
is cut off, refused, malformed or reset, and a few never come. The test then counts open connections,
threads, calls in flight and what is left on the heap. The figure is 0. If a check fails, the benchmark fails,
and the page says so.
"""

from __future__ import annotations

import shutil

from benchmarks.harness.figure import ROOT, BenchmarkError, Figure, run

#: What its processes run.
PROGRAMS = ("runtime/java",)
_CALLS = 1_000_000
_TEST = "ConnectionsTest#aHundredThousandCallsLeaveNothingBehind"


def measure() -> list[Figure]:
    """Run the test."""
    maven = shutil.which("mvn")
    if maven is None:
        raise BenchmarkError("Java 17 and Maven 3.8 or newer are needed")
    where = (
        "--batch-mode",
        "--quiet",
        "--file",
        str(ROOT / "runtime" / "java"),
        "--projects",
        "endpoint-client",
    )
    run([maven, *where, "--also-make", "test", f"-Dtest={_TEST}", f"-Dcalls={_CALLS}"])
    return [Figure("java_client_leaks", 0, "failed checks", goal=0)]
