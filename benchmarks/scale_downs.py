"""A thousand scale-downs of live simulated workers, while clients count every token of every stream.

Dynamo's own frontends, two per deployment, serve simulated workers: six aggregated ones (Qwen3-8B on L40S),
and four prefill and four decode workers (Qwen3-32B on H200). Clients stream without a break. At random
moments, up to all but one worker of each role get SIGTERM, as pods of a scale-down do, and are started again
once they have ended. A client counts the words of each answer (a word is a token), and compares them
with the number that it asked for, with `usage` and with the end of the stream. A stream is cut if a token is
missing or doubled, if an error arrives, or if the stream does not end. The goal is none.

A worker has two seconds for its streams after SIGTERM, which is shorter than many of them: these move to
another worker. On AWS the time is that of the longest stream, or at most 90 s on spot instances.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.harness.figure import Figure
from benchmarks.harness.scaled_platform import aggregated, disaggregated, serving
from inference_blueprints.measure.statistics import percentile
from inference_local.scaling.counted_load import CountedLoad, StreamLengths
from inference_local.scaling.ending_workers import ScaleDown, ScaleDowns, Streamed, stream_while

_SCALE_DOWNS = 500
_FINISH_SECONDS = 2
_CLIENTS = 12
_LENGTHS = StreamLengths((50, 1000), (20, 250))
_STREAM_SECONDS = 300.0
_LAYOUTS = {"aggregated": partial(aggregated, 6), "disaggregated": partial(disaggregated, 4, 4)}


def measure() -> list[Figure]:
    """Take the measurement."""
    with ThreadPoolExecutor() as both:
        measured = list(both.map(_scale_down, _LAYOUTS))
    return [figure for name, done in zip(_LAYOUTS, measured, strict=True) for figure in _figures(name, *done)]


def _scale_down(layout: str) -> tuple[Streamed, list[ScaleDown]]:
    done: list[ScaleDown] = []

    async def disturb(workers: ScaleDowns, _: CountedLoad) -> None:
        await workers.at_random(_SCALE_DOWNS, seed=1, each=done.append)

    with (
        tempfile.TemporaryDirectory() as folder,
        serving(_LAYOUTS[layout](), Path(folder), finish_seconds=_FINISH_SECONDS) as running,
    ):
        streamed = stream_while(
            running, disturb, _LENGTHS, clients=_CLIENTS, timeout_seconds=_STREAM_SECONDS, seed=1
        )
        running.check()
    for fault in streamed.count.faults:
        print(f"{layout}: cut stream: {fault}", file=sys.stderr)
    return streamed, done


def _figures(layout: str, streamed: Streamed, done: list[ScaleDown]) -> list[Figure]:
    left_out = percentile([each.left_out_seconds for each in done], 99) or 0.0
    under_way = sum(each.streams for each in done) / len(done)
    counted: list[tuple[str, float, str, float | None]] = [
        ("cut streams", len(streamed.count.faults), "streams", 0),
        ("scale-downs", len(done), "workers", None),
        ("streams, every token counted", streamed.count.streams, "streams", None),
        ("tokens", streamed.count.tokens, "tokens", None),
        ("streams that moved", streamed.moved, "streams", None),
        (
            "streams under way at a scale-down, mean",
            under_way,
            "streams",
            None,
        ),
        ("until no frontend lists the worker, p99", left_out, "s", None),
    ]
    return [
        Figure(f"scale_downs {layout}, {name}", value, unit, goal=goal, simulated=True)
        for name, value, unit, goal in counted
    ]
