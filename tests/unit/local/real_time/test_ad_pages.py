"""Pages are sent at their own times and measured from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from inference_blueprints.local.real_time.ad_pages import PagePlan, view_pages
from inference_blueprints.local.real_time.real_time_outcome import PageView
from inference_blueprints.measurement.tokenizer.vocabulary import random_text

WAIT = 0.2
WORDS, SEED = 3, 7
TEXTS = [random_text(WORDS, SEED + number) for number in range(5)]


@asynccontextmanager
async def ad_server(bodies: list[str]) -> AsyncIterator[str]:
    """Answer the first page late and the third with a fallback. The fourth breaks."""

    async def ad(request: web.Request) -> web.Response:
        bodies.append(await request.text())
        number = TEXTS.index(bodies[-1])
        if number == 0:
            await asyncio.sleep(WAIT)
        if number == 2:
            return web.json_response({"ad": "b", "fallback": True, "why": "DEADLINE"})
        if number == 3:
            return web.Response(status=500)
        return web.json_response({"ad": "a", "fallback": False, "promptTokens": 9, "answerTokens": 2})

    app = web.Application()
    app.router.add_post("/ad", ad)
    async with TestServer(app) as server:
        yield str(server.make_url("/ad"))


def test_a_slow_answer_delays_no_other_page() -> None:
    bodies: list[str] = []
    seen: list[PageView] = []

    async def run() -> list[PageView]:
        async with ad_server(bodies) as url:
            return await view_pages(url, PagePlan(WORDS, 1000.0, len(TEXTS), SEED), seen.append)

    views = asyncio.run(run())
    assert [view.fallback for view in views] == [None, None, "DEADLINE", "NO_AD", None]
    assert views[0].seconds >= WAIT
    assert seen[-1] is views[0], "the others were sent and answered while the first waited"
    assert (views[1].prompt_tokens, views[1].answer_tokens) == (9, 2)
    assert sorted(bodies) == sorted(TEXTS)
    assert len(set(TEXTS)) == len(TEXTS), "no page hits the cache of another"


def test_pages_wait_until_they_are_due() -> None:
    async def run() -> float:
        began = time.perf_counter()
        await view_pages("http://127.0.0.1:9/ad", PagePlan(1, 10.0, 3, 0), lambda _: None)
        return time.perf_counter() - began

    assert asyncio.run(run()) >= 0.2


def test_a_server_that_is_gone_gives_no_ad() -> None:
    views = asyncio.run(view_pages("http://127.0.0.1:9/ad", PagePlan(1, 1000.0, 2, 0), lambda _: None))
    assert [view.fallback for view in views] == ["NO_AD", "NO_AD"]
