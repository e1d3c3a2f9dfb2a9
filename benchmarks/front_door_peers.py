"""What the front door costs beside other gateways: LiteLLM's proxy, and Envoy AI Gateway.

All take turns in one run, before the same model, with the same requests and connections that are kept: a
prompt of 600 characters, a short answer, no TLS. Each is one replica: an Envoy with one worker thread and
what stands beside it, or one process of LiteLLM. A value is the processor time of all its processes, the
median of five rounds; the baseline is the same of the other gateway.

Short requests are sent at a steady rate that each can bear: 200 per second, and 15 per second to LiteLLM,
which takes about a quarter of a processor there. In `front_door_peers_litellm_same_rate` the door gets 15
per second too: what it does without requests counts then. A chunk is one of a stream at a chunk per second,
while all are open: 500 streams, and 25 of LiteLLM. An answer has its usage in each chunk, for all of them.

What differs, and whom it favours:

- The door knows the caller by an API key, keeps a day and a month of a team and of the key, logs the
  request, and settles it by the log.
- `ai_gateway` is the gateway 1.0.0 with API keys, counted tokens, a cost and a log, as its controller
  configures them. It keeps no limits, which favours it. `ai_gateway_limits` keeps a day and a month of team
  and key by the gateway's own way, a service of limits and a Valkey: it is the one that does as much as the
  door. It counts after the answer, so requests at the same time pass a limit together.
- LiteLLM 1.108.7 has no database here, so it knows one key and keeps no budget and no record, which favours
  it. Releases after that cannot be installed from the Python index alone.

`cut` is the share of the chunks of a stream that is charged, if its caller goes away after four of ten: by
the counter of the team's month at the door, and by the log at the gateway.

It needs the packages and Go modules of both: the first run installs them into the cache folder, a quarter
of an hour. If one cannot be installed, nothing is measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.front_door import Started, budgets, started
from benchmarks.harness.figure import BenchmarkError, Figure, interleaved_medians
from benchmarks.harness.measured_door import PROMPT_TOKENS, MeasuredWay, requests_at
from benchmarks.harness.paced_streams import cut_streams, paced_chunks
from benchmarks.harness.peers import ai_gateway, litellm
from inference_local.control_plane import build
from tests.runtime.front_door.policy_process import PRICES, wait_for

_ROUNDS: Final = 5
_SECONDS: Final = 6.0
_PER_SECOND, _LITELLM_PER_SECOND = 200, 15
_STREAMS, _LITELLM_STREAMS = 500, 25
#: Time in which streams begin: no faster than short requests come.
_BEGIN_SECONDS: Final = 3.0
_CUT_STREAMS, _CUT_CHUNKS = 20, 4


def measure() -> list[Figure]:
    """Take the measurement."""
    with started() as start:
        bare, door = start.bare(), start.door("budgets", *budgets())
        plain = ai_gateway.start(start)
        limited = ai_gateway.start(start, limits=True)
        other = litellm.start(start)
        build.remove_build_cache()
        fast = (bare, door, plain, limited)
        for way in fast:
            requests_at(way, _PER_SECOND, 1.0)
        requests_at(other, _LITELLM_PER_SECOND, 2.0)
        short = interleaved_medians(
            [
                *(_short(way, _PER_SECOND) for way in fast),
                *(_short(way, _LITELLM_PER_SECOND) for way in (other, door)),
            ],
            _ROUNDS,
        )
        chunk = interleaved_medians(
            [*(_chunk(way, _STREAMS) for way in fast), _chunk(other, _LITELLM_STREAMS)], _ROUNDS
        )
        charged = _charged_by_door(start, door), _charged_by_gateway(start, plain)
    return [
        *compared("", "us per request", short),
        *compared("_chunk", "us per chunk", chunk),
        Figure("front_door_peers_litellm_same_rate", short[5], "us per request", baseline=short[4]),
        Figure("front_door_peers_cut", charged[0], "% of the chunks charged"),
        Figure("front_door_peers_cut_ai_gateway", charged[1], "% of the chunks charged"),
    ]


def compared(end: str, unit: str, medians: Sequence[float]) -> Iterator[Figure]:
    """Yield the door beside bare Envoy, the gateway, the gateway with limits, and LiteLLM."""
    bare, door, plain, limited, other = medians[:5]
    yield Figure(f"front_door_peers_bare{end}", door, unit, baseline=bare)
    yield Figure(f"front_door_peers_ai_gateway{end}", door, unit, baseline=plain, goal=0.6)
    yield Figure(f"front_door_peers_ai_gateway_limits{end}", door, unit, baseline=limited)
    yield Figure(f"front_door_peers_litellm{end}", door, unit, baseline=other, goal=0.05)


def _short(way: MeasuredWay, per_second: float) -> Callable[[], float]:
    def taken() -> float:
        before = way.processor_seconds()
        found = requests_at(way, per_second, _SECONDS)
        spent = way.processor_seconds() - before
        if found.failed:
            raise BenchmarkError(f"{way.name}: {found.failed} requests failed; is the machine busy?")
        return spent / len(found.seconds) * 1e6

    return taken


def _chunk(way: MeasuredWay, streams: int) -> Callable[[], float]:
    def taken() -> float:
        found = paced_chunks(way, streams, _BEGIN_SECONDS)
        if found.failed or not found.chunks:
            raise BenchmarkError(f"{way.name}: {found.failed} streams failed; is the machine busy?")
        return found.microseconds

    return taken


def _charged_by_door(start: Started, door: MeasuredWay) -> float:
    """Return the percentage of the chunks of cut streams that the team was charged."""
    before = _spent(start)
    came = cut_streams(door, _CUT_STREAMS, _CUT_CHUNKS)
    nano = _spent(start) - before - _CUT_STREAMS * PROMPT_TOKENS * PRICES.input_token
    return nano / PRICES.output_token / came * 100


def _spent(start: Started) -> int:
    """Return what the team has spent today, in nano-dollars, when nothing is reserved."""
    with start.platform.store.client() as store:
        wait_for(lambda: int(store.hget("door:{red}", "R") or 0) == 0)
        return int(store.hget("door:{red}", "D"))


def _charged_by_gateway(start: Started, gateway: MeasuredWay) -> float:
    """Return the percentage of the chunks of cut streams that the gateway's log counts."""
    log = ai_gateway.access_log(start)

    def counted() -> list[float]:
        return [float(json.loads(line)["out"] or 0) for line in _whole_lines(log)]

    before = counted()
    if not all(before):
        raise BenchmarkError(f"{gateway.name}: the log does not count whole streams")
    came = cut_streams(gateway, _CUT_STREAMS, _CUT_CHUNKS)
    wait_for(lambda: len(counted()) == len(before) + _CUT_STREAMS)
    return sum(counted()[len(before) :]) / came * 100


def _whole_lines(log: Path) -> list[str]:
    """Return the lines of a log that Envoy has written to their ends."""
    return log.read_text().rpartition("\n")[0].splitlines()
