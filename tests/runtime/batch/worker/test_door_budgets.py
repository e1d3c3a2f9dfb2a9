"""Lines wait while a budget at the front door refuses their team, and no line of another team does."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

from batch.contracts.request import JobDescription
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.drain import Drain
from batch.worker.image_loader import Images
from batch.worker.line_run import LineRunner, ShardTerms
from batch.worker.metrics import Metrics
from batch.worker.model_endpoint import Answer, Failure, ModelEndpoint, ModelRequest, Requests, _judge
from batch.worker.retry_budget import RetryBudget
from batch.worker.rows import RowIdentifier, Tally
from batch.worker.team_budget import AGAIN_SECONDS, USED_UP_SECONDS
from inference_contracts.door_headers import BUDGET_SCOPE
from tests.runtime.batch.worker.jobs import lines
from tests.runtime.batch.worker.turned_loop import turn

LINES = 60
ANSWER_SECONDS = 2.0
MONTH = 20 * 24 * 3600


def refusal(code: str, retry_after: int) -> Failure:
    """Return what a budget answers."""
    body = json.dumps({"error": {"message": "The budget of the team 'ads' is 1", "code": code}}).encode()
    headers = {"Retry-After": str(retry_after), BUDGET_SCOPE: "team"}
    found = _judge(429, headers, body, 0.01)
    assert isinstance(found, Failure)
    return found


@dataclass
class Door:
    """Admits so many requests of each team, and refuses the others."""

    left: dict[str, int]
    refused: Failure
    sent: Counter[str] = field(default_factory=Counter)

    async def ask(self, _: str, request: ModelRequest, **__: object) -> Answer | Failure:
        self.sent[request.team] += 1
        if self.left.get(request.team, LINES) <= 0:
            await asyncio.sleep(0.01)
            return self.refused
        self.left[request.team] = self.left.get(request.team, LINES) - 1
        await asyncio.sleep(ANSWER_SECONDS)
        return Answer(200, "", b"{}")


def runner_of(door: Door) -> LineRunner:
    limit = ConcurrencyLimit(start=20, minimum=1, maximum=20)
    return LineRunner(cast("ModelEndpoint", door), limit, RetryBudget(0.1), Metrics("chat", "qwen"), 5, 100)


def terms_of(runner: LineRunner, team: str, seconds: float) -> ShardTerms:
    description = JobDescription("job", team, "qwen", "/v1/chat/completions", 0)
    return ShardTerms(
        identifier=RowIdentifier("job", "0"),
        requests=Requests(description, cast("Images", None)),
        path="/v1/chat/completions",
        deadline=asyncio.get_running_loop().time() + seconds,
        order=0,
        drain=Drain(),
        team=team,
        budget=runner.budgets[team],
    )


async def run_lines(runner: LineRunner, terms: ShardTerms) -> list[Any]:
    """Run lines; of one that was left to another worker, there is None."""

    async def one(number: int) -> Any:
        try:
            with terms.drain.waits():
                await terms.budget.opened()
                permit = runner.limit.acquire_now() or await runner.limit.acquire(0)
            return (await runner.run(lines(LINES)[number], terms, permit)).row
        except asyncio.CancelledError:
            return None

    rows = await asyncio.gather(*map(one, range(LINES)))
    assert runner.limit.in_flight == 0
    return rows


def test_a_team_without_money_gives_its_shard_back_and_loses_no_answer() -> None:
    """Red if lines of the team end with an error while there is time, or if lines of others wait for it."""
    door = Door({"ads": 25}, refusal("insufficient_quota", MONTH))

    async def go() -> tuple[list[Any], list[Any], float]:
        runner, now = runner_of(door), asyncio.get_running_loop().time
        spent, begin = terms_of(runner, "ads", 24 * 3600), now()
        found = await asyncio.gather(
            run_lines(runner, spent), run_lines(runner, terms_of(runner, "search", 24 * 3600))
        )
        assert spent.budget.is_used_up
        assert spent.budget.seconds_left > AGAIN_SECONDS
        assert runner.limit.limit == 20  # it says nothing about the model
        return *found, now() - begin

    ads, search, seconds = turn(go())
    assert sum(row is not None for row in ads) == 25
    assert all(json.loads(row)["error"] is None for row in [*search, *filter(None, ads)])
    assert USED_UP_SECONDS <= seconds < USED_UP_SECONDS + 60
    # While it is closed, one line at a time asks: after 1, 2, 4, 8, 16 and 30 seconds.
    assert door.sent["ads"] <= LINES + 6


def test_lines_go_on_when_a_budget_is_raised_or_gets_back_what_was_reserved() -> None:
    """Red if one refusal ends a shard, or if nobody asks again."""
    door = Door({"ads": 10}, refusal("insufficient_quota", MONTH))

    async def go() -> list[Any]:
        runner = runner_of(door)
        asyncio.get_running_loop().call_later(USED_UP_SECONDS / 2, door.left.__setitem__, "ads", LINES)
        return await run_lines(runner, terms_of(runner, "ads", 3600))

    assert all(json.loads(row)["error"] is None for row in turn(go()))


def test_shortly_before_the_deadline_lines_end_with_the_reason_and_can_be_run_again() -> None:
    """Red if a line is lost, or if its row does not say that the budget is to blame."""
    door = Door({"ads": 7}, refusal("insufficient_quota", MONTH))

    async def go() -> list[Any]:
        runner = runner_of(door)
        return await run_lines(runner, terms_of(runner, "ads", AGAIN_SECONDS - 1))

    tally, codes = Tally(), Counter[str]()
    for row in turn(go()):
        assert tally.add(row) in {"output", "expired"}
        error = json.loads(row)["error"]
        codes[error["code"] if error else ""] += 1
        assert error is None or "The budget of the team 'ads' is 1" in error["message"]
    assert codes == {"": 7, "insufficient_quota": LINES - 7}


def test_a_limit_per_minute_lets_its_team_wait_and_is_never_the_reason_of_an_end() -> None:
    """Red if a shard is given back, or a row names the budget, because of a limit that soon begins anew."""
    door = Door({"ads": 10}, refusal("rate_limit_exceeded", 20))

    async def go() -> list[Any]:
        runner = runner_of(door)
        terms = terms_of(runner, "ads", 200)
        asyncio.get_running_loop().call_later(100, door.left.__setitem__, "ads", 30)
        rows = await run_lines(runner, terms)
        assert not terms.budget.is_used_up
        return rows

    rows = [json.loads(row) for row in turn(go())]
    assert Counter((row["error"] or {"code": ""})["code"] for row in rows) == {"": 40, "batch_expired": 20}
