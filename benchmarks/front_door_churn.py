"""Whether the memory of the front door stays flat while connections, keys and configurations come and go.

Each second, 12 requests and 4 streams come on connections of their own, and every second stream is cut.
Every two seconds a key is made, and an old one is revoked. Every five seconds the configuration changes:
budgets, an alias of the model, and a cluster of Envoy.
The figure is the growth of the resident memory of Envoy, the policy process and Valkey, from the mean of the
second quarter of the time to that of the last quarter. It runs for three minutes, or for as many as
`FRONT_DOOR_CHURN_MINUTES` says: 60 for an hour.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from typing import Final

from benchmarks.front_door import budgets, started
from benchmarks.harness.churn import Churn
from benchmarks.harness.figure import BenchmarkError, Figure

_MINUTES: Final = 3.0
_CHUNK_SECONDS: Final = 0.2
_CHUNKS: Final = 5
_GOAL_MIB: Final = 5.0


def measure() -> list[Figure]:
    """Take the measurement."""
    minutes = float(os.environ.get("FRONT_DOOR_CHURN_MINUTES", _MINUTES))
    with started(_CHUNK_SECONDS, _CHUNKS) as ways:
        churn = Churn(ways, ways.door("churn", *budgets()))
        asyncio.run(churn.run(minutes * 60, lambda line: print(line, file=sys.stderr, flush=True)))
        if churn.failed:
            causes = Counter(f"{each.step}: {each.status or each.error}" for each in churn.failed)
            raise BenchmarkError(f"{len(churn.failed)} of {churn.asked} requests failed: {dict(causes)}")
    grown = churn.growth()
    unit = f"MiB grown in {minutes:g} min: {churn.asked:,} connections, {churn.made:,} keys, "
    unit += f"{churn.configured:,} configurations"
    return [
        Figure("front_door_churn", sum(grown.values()), unit, goal=_GOAL_MIB),
        *(Figure(f"front_door_churn_{name}", value, "MiB grown") for name, value in grown.items()),
    ]
