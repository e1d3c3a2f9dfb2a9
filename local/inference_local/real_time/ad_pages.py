"""Asks an ad server for ads as web pages do: at their own times, whether or not earlier ones are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from inference_blueprints.measure.replay.open_loop import Pacing
from inference_blueprints.measure.tokenizer import random_text
from inference_local.real_time.real_time_outcome import PageView

#: Why a page has no ad of the server at all.
NO_AD = "NO_AD"
#: Far beyond any deadline: a page that waits so long found a server that stands still.
_TIMEOUT = ClientTimeout(total=60)
_REAL_TIME = Pacing()


@dataclass(frozen=True, slots=True)
class PagePlan:
    """Which pages are sent."""

    words: int
    """Length of the text of a page, in words of one token each."""
    requests_per_second: float
    """How many pages arrive per second, evenly."""
    count: int
    """Number of pages."""
    seed: int
    """Chooses the texts. All texts of one or several plans are different if their seeds differ by `count`."""


async def view_pages(
    url: str, plan: PagePlan, viewed: Callable[[PageView], None], pacing: Pacing = _REAL_TIME
) -> list[PageView]:
    """Send pages to an ad server, open loop.

    url: Where the ad server takes pages.
    viewed: Called after each page.
    pacing: The time source.
    Returns: In the order in which the pages were due.
    """
    async with ClientSession(connector=TCPConnector(limit=0), timeout=_TIMEOUT) as session:
        began = pacing.clock()

        async def view(number: int) -> PageView:
            due = began + number / plan.requests_per_second
            await pacing.sleep(due - pacing.clock())
            text = random_text(plan.words, plan.seed + number)
            page = await _ad(session, url, text, lambda: pacing.clock() - due)
            viewed(page)
            return page

        return list(await asyncio.gather(*map(view, range(plan.count))))


async def _ad(session: ClientSession, url: str, text: str, waited: Callable[[], float]) -> PageView:
    ad: dict[str, Any]
    try:
        async with session.post(url, data=text.encode()) as answer:
            ad = json.loads(await answer.read()) if answer.ok else {"fallback": True, "why": NO_AD}
    except (ClientError, OSError, TimeoutError, ValueError):
        ad = {"fallback": True, "why": NO_AD}
    return PageView(
        seconds=waited(),
        fallback=str(ad.get("why", NO_AD)) if ad["fallback"] else None,
        prompt_tokens=ad.get("promptTokens"),
        answer_tokens=ad.get("answerTokens"),
    )
