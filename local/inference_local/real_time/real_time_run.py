"""Runs a Java ad server for each model with a deadline, and sends pages to all of them at once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from inference_blueprints.measure.replay.open_loop import Pacing
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.types import Blueprint, Model, RealTime
from inference_contracts.errors import UserError
from inference_local.java import java_programs
from inference_local.processes.child_processes import ProcessGroup
from inference_local.real_time.real_time_outcome import PageView, RealTimeOutcome, outcome_of
from inference_local.run_state import RunningModel
from inference_local.run_steps import PAGES, Step, Steps
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.platform_parts import PlatformPart

# Asks an ad server for ads as web pages do: at their own times, whether or not earlier ones are answered.

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


_MODULE = "ad-server-example"
_PROGRAM = "inferenceblueprints.adserver.AdServer"
#: How long pages arrive, in seconds.
_SECONDS = 60.0
#: Pages that are not counted: the virtual machine compiles the server while it answers them.
_WARM_UP_PAGES = 60
#: Words of the first page, which shows how many tokens the server and the chat template add.
_FIRST_WORDS = 8
#: Seeds of the pages: far from those of the replay, so that no page hits its cache.
_SEED = 1 << 40
_READY_SECONDS = 60.0
_POLL_SECONDS = 0.05
# Without it, the JDK's HTTP server waits 40 ms before it sends the body of an answer.
_OPTIONS = ("-Dsun.net.httpserver.nodelay=true", "-Xmx256m")
_LISTENING = re.compile(r"listening on (http://\S+)")


@dataclass(frozen=True, slots=True)
class _Served:
    """A model with a deadline, and the ad server that calls it."""

    model: Model
    limits: RealTime
    url: str


def real_time_models(blueprint: Blueprint) -> list[Model]:
    """Return the models whose callers have a deadline."""
    return [model for model in blueprint.spec.models if model.real_time is not None]


def run_real_time(
    blueprint: Blueprint,
    running: Sequence[RunningModel],
    directory: Path,
    *,
    engines: EngineKind,
    steps: Steps,
    seconds: float | None,
) -> tuple[RealTimeOutcome, tuple[PlatformPart, ...]]:
    """Send pages to an ad server per model with a deadline, at the workload's peak rate.

    blueprint: With at least one such model.
    directory: Folder for logs.
    engines: The engines that answer.
    steps: Where progress is shown: one step.
    seconds: How long pages arrive. None for the default, a minute.
    Returns `RealTimeOutcome`: With a reason if Java or Maven is missing, or if times mean nothing here.
    Returns `tuple of PlatformPart`: Rows of the table of parts.
    Raises UserError if an ad server cannot be built or does not start.
    """
    models = real_time_models(blueprint)
    names = [model.name for model in models]
    with steps.step(PAGES) as step:
        reason = (
            java_programs.missing_tools() if engines.has_times else "times mean nothing with these engines"
        )
        if reason is not None:
            step.result = f"SKIPPED: {reason}"
            return RealTimeOutcome(models=tuple(names), skipped=reason), ()
        step.update(detail="Maven builds the ad server")
        java_programs.build([_MODULE], directory / "maven.log")
        with ProcessGroup() as processes:
            served = [_start(model, running, directory, processes) for model in models]
            outcome = asyncio.run(_measure(served, engines, seconds or _SECONDS, step))
            processes.check()
        step.result = f"{outcome.requests} pages, {outcome.fallbacks} fallbacks"
    part = PlatformPart(
        "Ad server", "real", "runtime/java/ad-server-example on this machine's JVM, with the Java client"
    )
    return outcome, (part,)


async def _measure(
    served: Sequence[_Served], engines: EngineKind, seconds: float, step: Step
) -> RealTimeOutcome:
    """Warm the servers up, then send all pages of the workloads and count them."""
    plans = [await _plan(each, engines, seconds) for each in served]
    done, total = 0, sum(plan.count for plan in plans)

    def viewed(_: PageView) -> None:
        nonlocal done
        done += 1
        step.update(done, total)

    views = await asyncio.gather(
        *(view_pages(each.url, plan, viewed) for each, plan in zip(served, plans, strict=True))
    )
    return outcome_of(
        [view for pages in views for view in pages],
        [each.model.name for each in served],
        deadline_ms=min(each.limits.deadline_millis for each in served),
        fallback_limit=min(each.limits.fallback_percent for each in served) / 100,
        requests_per_second=sum(plan.requests_per_second for plan in plans),
        warm_up_requests=len(served) * _WARM_UP_PAGES,
    )


async def _plan(served: _Served, engines: EngineKind, seconds: float) -> PagePlan:
    """Return the pages of a model's workload, after the warm-up, whose first pages show the added tokens."""
    workload = engines.replayed_workload(own_means(served.model))
    rate = workload.peak_requests_per_second
    first = PagePlan(_FIRST_WORDS, rate, _WARM_UP_PAGES // 2, _SEED)
    counted = [view.prompt_tokens for view in await view_pages(served.url, first, _ignore)]
    known = [tokens for tokens in counted if tokens is not None]
    if not known:
        raise UserError(f"the ad server of {served.model.name} got no answer of the model at all")
    words = max(1, workload.input_tokens - (min(known) - _FIRST_WORDS))
    second = PagePlan(words, rate, _WARM_UP_PAGES - first.count, _SEED + first.count)
    await view_pages(served.url, second, _ignore)
    return PagePlan(words, rate, max(1, round(seconds * rate)), _SEED + _WARM_UP_PAGES)


def _ignore(_: PageView) -> None:
    """Count no page of the warm-up."""


def _start(
    model: Model, running: Sequence[RunningModel], directory: Path, processes: ProcessGroup
) -> _Served:
    limits = model.real_time
    if limits is None:
        raise ValueError(f"{model.name} has no deadline")
    [endpoint] = [each.base_url for each in running if each.name == model.name]
    log = directory / f"ad-server-{model.name}.log"
    command = java_programs.java_command(
        _MODULE,
        _PROGRAM,
        endpoint,
        model.name,
        str(round(limits.deadline_millis)),
        str(own_means(model).output_tokens),
        temporary=directory / f"ad-server-{model.name}-tmp",
        options=_OPTIONS,
    )
    processes.start(f"ad server of {model.name}", command, environment=dict(os.environ), log_path=log)
    found = wait_for_line(log, _LISTENING, processes.check)
    return _Served(model, limits, f"{found[1]}/ad")


def wait_for_line(
    log: Path, pattern: re.Pattern[str], check: Callable[[], None], seconds: float = _READY_SECONDS
) -> re.Match[str]:
    """Wait until a program has written a line.

    log: File with its output.
    pattern: What the line contains.
    check: Raises `ProcessDied` if the program has ended.
    seconds: How long to wait.
    Raises UserError if the line does not come in time.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = pattern.search(log.read_text(errors="replace")) if log.is_file() else None
        if found:
            return found
        check()
        if time.monotonic() > deadline:
            raise UserError(f"{log}: no line with '{pattern.pattern}' after {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
