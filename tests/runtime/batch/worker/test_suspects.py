"""A line that ends the workers of a model is given up, and no other line is, whatever status they get."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from request_filter.refused_request import RefusedRequestError
from request_filter.suspects import CHECK_SECONDS, SuspectMemory

from batch.contracts.request import JobDescription
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.drain import Drain
from batch.worker.image_loader import Images
from batch.worker.line_run import LineRunner, ShardTerms
from batch.worker.metrics import Metrics
from batch.worker.model_endpoint import (
    Answer,
    EndpointFault,
    Failure,
    ModelEndpoint,
    ModelRequest,
    Requests,
    _judge,
)
from batch.worker.retry_budget import RetryBudget
from batch.worker.rows import RowIdentifier
from batch.worker.suspects import LOSSES_ALONE, LOSSES_AMONG_OTHERS, SuspectTurn
from tests.runtime.batch.worker.jobs import lines
from tests.runtime.batch.worker.turned_loop import turn

POISON = "poison"
BYSTANDERS = 200
RESTART_SECONDS = 40.0


def answered(status: int, body: bytes, *, seconds: float = 0.0, pause: str = "") -> Failure:
    """Return what an answer with an error means that came after this time."""
    found = _judge(status, {"Retry-After": pause} if pause else {}, body, seconds)
    assert isinstance(found, Failure)
    return found


#: Workers, and seeds with which a bystander was given up when processes did not take turns.
SEEDS = ((1, 4), (1, 31), (4, 1))
#: What a caller gets whose worker has died, and nothing of JSON from a load balancer that finds none.
DEATHS: Mapping[str, Failure] = {
    "503": answered(503, b'{"error": {"message": "no instances", "code": 503}}'),
    "502": answered(502, b"<html>Bad Gateway</html>", seconds=0.3),
    "reset": Failure(EndpointFault.LOST, "the connection was lost: ServerDisconnectedError"),
    "500": answered(500, b'{"error": {"message": "EngineDeadError"}}'),
}
NOBODY = answered(503, b"<html>Service Unavailable</html>", seconds=0.01)


@pytest.fixture(autouse=True)
def the_same_chance() -> None:
    random.seed(34)


@dataclass
class Fleet:
    """Workers of a model. One that computes the poisonous prompt dies with all that it computes.

    What is lost goes to another worker once, as Dynamo's frontend does it.
    """

    size: int
    death: str
    chance: random.Random
    migrations: int = 1
    deaths: int = 0
    restart_seconds: float = RESTART_SECONDS
    beside_poison: list[int] = field(default_factory=list)
    _running: dict[int, dict[asyncio.Future[None], None]] = field(default_factory=dict)
    """In the order of their start: a set would end them in any order, and no two runs were the same."""

    def __post_init__(self) -> None:
        self._running = {number: {} for number in range(self.size)}

    async def ask(self, _: str, request: ModelRequest, **__: object) -> Answer | Failure:
        content = json.loads(request.body)["messages"][0]["content"]
        for attempt in range(1 + self.migrations):
            if not self._running:
                return DEATHS[self.death] if attempt else NOBODY
            worker = self.chance.choice(sorted(self._running))
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._running[worker][gone] = None
            if content == POISON:
                beside = sum(map(len, self._running.values())) - 1
                self.beside_poison.append(beside)
                await asyncio.wait([gone], timeout=self.chance.uniform(0.02, 1))
                if not gone.done():
                    self.die(worker)
                continue
            await asyncio.wait([gone], timeout=self.chance.uniform(1, 8))
            if not gone.done():
                self._running[worker].pop(gone, None)
                return Answer(200, "", b"{}")
        return DEATHS[self.death]

    def die(self, worker: int) -> None:
        """End a worker with all its requests. It is started again."""
        self.deaths += 1
        for gone in self._running.pop(worker):
            gone.set_result(None)
        asyncio.get_running_loop().call_later(self.restart_seconds, self._running.__setitem__, worker, {})

    def die_somewhere(self) -> None:
        """End any worker, for a reason of its own."""
        if self._running:
            self.die(self.chance.choice(sorted(self._running)))


@dataclass
class FilteredFleet(Fleet):
    """A fleet behind the filters of entry points. Each remembers for itself."""

    frontends: int = 1
    memories: list[SuspectMemory] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.memories = [SuspectMemory(2, 120, 24 * 3600) for _ in range(self.frontends)]

    async def ask(self, _: str, request: ModelRequest, **__: object) -> Answer | Failure:
        now = asyncio.get_running_loop().time
        memory = self.chance.choice(self.memories)
        digest = hashlib.sha256(request.body).digest()
        try:
            run = memory.start(digest, now())
        except RefusedRequestError as refused:
            error = json.dumps({"error": {"message": str(refused), "code": refused.code}}).encode()
            return answered(refused.status, error, pause=str(refused.retry_after))
        found = await super().ask("", request)
        if isinstance(found, Answer):
            memory.answered(run)
        else:
            memory.failed(run, now())
            memory.check(run, now(), CHECK_SECONDS)
        return found

    def die(self, worker: int) -> None:
        super().die(worker)
        now = asyncio.get_running_loop().time()
        # It was last seen alive some time before, and is seen dead some time later.
        for memory in self.memories:
            asyncio.get_running_loop().call_later(
                self.chance.uniform(0.1, 1.5), memory.died, now - 1, now + 1.5
            )


@dataclass
class TurnTable:
    """The item of the turn, written under its condition: see `test_suspect_turn`."""

    item: dict[str, Any] = field(default_factory=dict)
    writes: int = 0

    def put_item(self, *, Item: dict[str, Any], ExpressionAttributeValues: Any, **_: object) -> None:  # noqa: N803 - the names of boto3
        self.writes += 1
        now, holder = float(ExpressionAttributeValues[":now"]["N"]), ExpressionAttributeValues[":holder"]
        if self.item and self.item["holder"] != holder and float(self.item["until"]["N"]) > now:
            code = {"Error": {"Code": "ConditionalCheckFailedException", "Message": "no"}}
            raise ClientError(cast("Any", code), "PutItem")
        self.item = Item


def runner_of(fleet: Fleet, in_flight: int = 40, turns: TurnTable | None = None) -> LineRunner:
    """Return what one process of batch runs its lines with."""
    limit = ConcurrencyLimit(start=in_flight, minimum=1, maximum=in_flight)
    turn = SuspectTurn(
        turns, "progress" if turns else None, "qwen", lambda: asyncio.get_running_loop().time()
    )
    endpoint, metrics = cast("ModelEndpoint", fleet), Metrics("chat", "qwen")
    return LineRunner(endpoint, limit, RetryBudget(0.1), metrics, 5, 100, turn)


async def run_lines(fleet: Fleet, runner: LineRunner, prompts: list[str], seconds: float) -> list[Any]:
    """Run lines with these prompts, and return their rows."""
    description = JobDescription("job", "ads", "qwen", "/v1/chat/completions", 0)
    terms = ShardTerms(
        identifier=RowIdentifier("job", "0"),
        requests=Requests(description, cast("Images", None)),
        path="/v1/chat/completions",
        deadline=asyncio.get_running_loop().time() + seconds,
        order=0,
        drain=Drain(),
    )

    async def one(number: int, prompt: str) -> Any:
        line = lines(number + 1)[number]
        body = {**line.body, "messages": [{"role": "user", "content": prompt}]}
        permit = runner.limit.acquire_now() or await runner.limit.acquire(0)
        result = await runner.run(type(line)(number, 1, line.custom_id, 1, body), terms, permit)
        return json.loads(result.row)

    rows = await asyncio.gather(*(one(number, prompt) for number, prompt in enumerate(prompts)))
    assert runner.limit.in_flight == 0
    return rows


async def two_processes(fleet: Fleet, turns: TurnTable | None = None) -> list[Any]:
    """Run the poison and 200 others in two processes of batch, and return the rows with errors."""
    shares = [[POISON, *map(str, range(BYSTANDERS // 2))], [*map(str, range(BYSTANDERS // 2))]]
    found = await asyncio.gather(
        *(run_lines(fleet, runner_of(fleet, turns=turns), prompts, 24 * 3600) for prompts in shares)
    )
    return [row for rows in found for row in rows if row["error"] is not None]


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("size", [1, 4])
def test_one_poisonous_line_is_given_up_and_no_bystander(size: int, death: str) -> None:
    """Red if the line is asked again without end, or if a line is given up that only ran beside it."""
    fleet = Fleet(size, death, random.Random(size))  # noqa: S311 - no secret

    refused = turn(two_processes(fleet))
    assert [row["custom_id"] for row in refused] == ["line-0"]
    assert refused[0]["error"]["code"] == "endpoint_error"
    assert "it may end the model's workers" in refused[0]["error"]["message"]
    # An attempt may end two workers.
    assert fleet.deaths <= (LOSSES_AMONG_OTHERS + LOSSES_ALONE) * min(size, 1 + fleet.migrations)


@pytest.mark.parametrize("death", ["503", "500"])
@pytest.mark.parametrize(("size", "migrations"), [(1, 1), (4, 0), (4, 1)])
def test_behind_the_filter_three_attempts_tell(size: int, migrations: int, death: str) -> None:
    """Red if batch needs more than one attempt alone after the filter's word, whatever the status is.

    Dynamo moves a lost request once, so that one attempt ends two workers of four: two attempts, four deaths.
    """
    fleet = FilteredFleet(size, death, random.Random(size), migrations)  # noqa: S311 - no secret

    async def go() -> None:
        begin = asyncio.get_running_loop().time()
        refused = await two_processes(fleet, TurnTable())
        assert [row["custom_id"] for row in refused] == ["line-0"]
        assert "it was lost once while no other request" in refused[0]["error"]["message"]
        assert asyncio.get_running_loop().time() - begin < 30 * 60

    turn(go())
    assert fleet.deaths <= (4 if migrations and size > 1 else 3)


@pytest.mark.parametrize(("size", "seed"), SEEDS)
def test_two_frontends_do_not_condemn_a_bystander(size: int, seed: int) -> None:
    """Red if two processes run suspects at the same time: each filter then blames the one that it knows."""
    fleet = FilteredFleet(size, "503", random.Random(seed), size > 1, frontends=2)  # noqa: S311 - no secret
    refused = turn(two_processes(fleet, TurnTable()))
    assert [row["custom_id"] for row in refused] == ["line-0"]
    assert fleet.deaths <= (LOSSES_AMONG_OTHERS + LOSSES_ALONE) * (2 if size > 1 else 1)


def test_the_word_of_the_filter_counts_in_the_turn_only() -> None:
    """Red if a loss that another process may have caused is enough, because the turn is over or unknown."""

    class Silent(TurnTable):
        def put_item(self, **_: object) -> None:
            raise EndpointConnectionError(endpoint_url="https://dynamodb")

    fleet = FilteredFleet(1, "503", random.Random(1), migrations=0)  # noqa: S311 - no secret
    [row] = turn(run_lines_of(fleet, Silent()))
    assert f"lost {LOSSES_ALONE} times" in row["error"]["message"]
    assert fleet.deaths == LOSSES_AMONG_OTHERS + LOSSES_ALONE


async def run_lines_of(fleet: Fleet, turns: TurnTable) -> list[Any]:
    return await run_lines(fleet, runner_of(fleet, turns=turns), [POISON], 24 * 3600)


def test_a_poisonous_line_alone_in_its_job_is_given_up() -> None:
    """Red if nobody else's answers are needed to find that the endpoint is there: 22 deaths in 75 seconds."""
    fleet = Fleet(4, "503", random.Random(1))  # noqa: S311 - no secret

    async def go() -> None:
        [row] = await run_lines(fleet, runner_of(fleet), [POISON], 24 * 3600)
        assert row["error"]["code"] == "endpoint_error"

    turn(go())
    assert fleet.deaths <= (LOSSES_AMONG_OTHERS + LOSSES_ALONE) * 2


@pytest.mark.parametrize("seed", range(5))
def test_workers_that_die_for_their_own_reasons_condemn_no_line(seed: int) -> None:
    """Red if a lost node, an interrupted Spot instance or a killed worker counts against the lines on it."""
    fleet = Fleet(3, "503", random.Random(seed), migrations=0, restart_seconds=20)  # noqa: S311 - no secret

    async def go() -> None:
        async def kill() -> None:
            while True:
                await asyncio.sleep(fleet.chance.uniform(5, 25))
                fleet.die_somewhere()

        killing = asyncio.create_task(kill())
        prompts = [str(number) for number in range(BYSTANDERS)]
        rows = await run_lines(fleet, runner_of(fleet, 8), prompts, 86_400)
        killing.cancel()
        assert [row["error"] for row in rows if row["error"]] == []

    turn(go())
    assert fleet.deaths > 5


def test_a_suspect_runs_alone() -> None:
    """Red if other requests of the process are in flight beside a suspect, and are lost with it."""
    fleet = Fleet(1, "503", random.Random(3), migrations=0)  # noqa: S311 - no secret

    async def go() -> None:
        await run_lines(fleet, runner_of(fleet, 10), [POISON, *map(str, range(300))], 86_400)

    turn(go())
    assert max(fleet.beside_poison[:LOSSES_AMONG_OTHERS]) > 0
    assert fleet.beside_poison[LOSSES_AMONG_OTHERS:] == [0] * LOSSES_ALONE


def test_an_outage_suspects_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Red if the lines of an outage run one after the other when it is over."""
    fleet = Fleet(1, "503", random.Random(4), migrations=0)  # noqa: S311 - no secret

    async def go() -> None:
        asyncio.get_running_loop().call_later(5, fleet.die_somewhere)
        rows = await run_lines(fleet, runner_of(fleet), [str(number) for number in range(100)], 86_400)
        assert [row for row in rows if row["error"]] == []

    turn(go())
    assert fleet.deaths == 1
    assert "line_suspected" not in capsys.readouterr().out


def test_an_error_of_one_line_is_no_death(capsys: pytest.CaptureFixture[str]) -> None:
    """Red if status 500 of one line alone is taken for the end of an engine before its attempts are over."""

    @dataclass
    class Server:
        asked: int = 0

        async def ask(self, _: str, request: ModelRequest, **__: object) -> Answer | Failure:
            await asyncio.sleep(1)
            if POISON.encode() not in request.body:
                return Answer(200, "", b"{}")
            self.asked += 1
            return DEATHS["500"] if self.asked < 4 else Answer(200, "", b"{}")

    async def go() -> None:
        prompts = [POISON, *map(str, range(3000))]
        server = cast("Fleet", Server())
        rows = await run_lines(server, runner_of(server), prompts, 3600)
        assert [row for row in rows if row["error"]] == []

    turn(go())
    assert "line_suspected" not in capsys.readouterr().out


@dataclass
class Filter:
    """The filter in front of an entry point: it refuses a request that two workers died with, for a time."""

    asked: list[float] = field(default_factory=list)
    beside: int = 0

    async def ask(self, _: str, request: ModelRequest, **__: object) -> Answer | Failure:
        await asyncio.sleep(1)
        if POISON.encode() not in request.body:
            return Answer(200, "", b"{}")
        self.asked.append(asyncio.get_running_loop().time())
        if len(self.asked) == 1:
            error = b'{"error": {"code": "suspected_of_worker_deaths", "message": "no"}}'
            return answered(503, error, pause="120")
        return Answer(200, "", b"{}")


def test_a_request_that_the_filter_suspects_waits_and_runs_alone() -> None:
    """Red if its refusal makes all other lines of the process wait, or if it is asked before its time."""
    endpoint = Filter()

    async def go() -> None:
        begin = asyncio.get_running_loop().time()
        runner = runner_of(cast("Fleet", endpoint))
        others = asyncio.create_task(run_lines(cast("Fleet", endpoint), runner, ["x"] * 100, 3600))
        [row] = await run_lines_beside(endpoint, runner)
        await others
        assert row["error"] is None
        assert endpoint.asked[1] - endpoint.asked[0] >= 120
        assert runner.metrics.failures == Counter(held=1)
        assert begin < endpoint.asked[0]

    async def run_lines_beside(endpoint: Filter, runner: LineRunner) -> list[Any]:
        return await run_lines(cast("Fleet", endpoint), runner, [POISON], 3600)

    turn(go())
