"""Pages are sent at their own times and measured from them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from inference_blueprints.measure.replay.open_loop import Pacing
from inference_blueprints.measure.tokenizer import random_text
from inference_local.real_time.real_time_outcome import PageView
from inference_local.real_time.real_time_run import PagePlan, view_pages

WORDS, SEED = 3, 7
AT_ONCE = Pacing(sleep=lambda _: asyncio.sleep(0))
TEXTS = [random_text(WORDS, SEED + number) for number in range(5)]


@asynccontextmanager
async def ad_server(bodies: list[str], let_go: asyncio.Event) -> AsyncIterator[str]:
    """Answer the first page when it is let go, and the third with a fallback. The fourth breaks."""

    async def ad(request: web.Request) -> web.Response:
        bodies.append(await request.text())
        number = TEXTS.index(bodies[-1])
        if number == 0:
            await let_go.wait()
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
        others_answered = asyncio.Event()

        def viewed(view: PageView) -> None:
            seen.append(view)
            if len(seen) == len(TEXTS) - 1:
                others_answered.set()

        async with ad_server(bodies, others_answered) as url:
            return await view_pages(url, PagePlan(WORDS, 1000.0, len(TEXTS), SEED), viewed, AT_ONCE)

    views = asyncio.run(run())
    assert [view.fallback for view in views] == [None, None, "DEADLINE", "NO_AD", None]
    assert seen[-1] is views[0], "the others were sent and answered while the first waited"
    assert (views[1].prompt_tokens, views[1].answer_tokens) == (9, 2)
    assert sorted(bodies) == sorted(TEXTS)
    assert len(set(TEXTS)) == len(TEXTS), "no page hits the cache of another"


def test_pages_wait_until_they_are_due_and_their_answers_count_from_then() -> None:
    now, waited = [1000.0], []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            now[0] += 5.0  # all pages leave late

    plan, pacing = PagePlan(1, 10.0, 3, 0), Pacing(clock=lambda: now[0], sleep=sleep)
    views = asyncio.run(view_pages("http://127.0.0.1:9/ad", plan, lambda _: None, pacing))
    assert waited == pytest.approx([0.0, 0.1, 0.2])
    assert [view.seconds for view in views] == pytest.approx([5.0, 4.9, 4.8])


def test_a_server_that_is_gone_gives_no_ad() -> None:
    plan = PagePlan(1, 1000.0, 2, 0)
    views = asyncio.run(view_pages("http://127.0.0.1:9/ad", plan, lambda _: None, AT_ONCE))
    assert [view.fallback for view in views] == ["NO_AD", "NO_AD"]
