"""What an elastic platform must do, whatever it runs on. Every token of every stream is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.local.conformance.elastic_platforms import MAXIMUM, MINIMUM, ElasticPlatform
from tests.local.conformance.platforms import AGGREGATED, eventually
from tests.local.counted_streams import Streams

#: Streams at the same time that a worker carries: 2.7 by its plan. Eight need three workers, two need one.
_FEW, _MORE = 2, 6


def workers_follow_the_load(platform: ElasticPlatform) -> None:
    async def run() -> tuple[Streams, Streams]:
        few = Streams([platform.url], AGGREGATED.model, platform.headers, clients=_FEW)
        more = Streams([platform.url], AGGREGATED.model, platform.headers, clients=_MORE)
        few.begin()
        await asyncio.to_thread(_wait, platform, MINIMUM)
        more.begin()
        await asyncio.to_thread(_wait, platform, MAXIMUM)
        await more.end()
        await asyncio.to_thread(_wait, platform, MINIMUM)
        await few.end()
        return few, more

    few, more = asyncio.run(run())
    assert (few.errors, more.errors) == ([], [])
    assert few.whole > 0
    assert more.whole > 0


def _wait(platform: ElasticPlatform, workers: int) -> None:
    eventually(lambda: platform.serving() == workers, f"{workers} workers ({platform.why()})")


CASES: tuple[Callable[[ElasticPlatform], None], ...] = (workers_follow_the_load,)
