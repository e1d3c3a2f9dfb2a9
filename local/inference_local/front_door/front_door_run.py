"""Starts the front door of a run, sends its load while a replica is killed, and counts what came of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import valkey

from inference_blueprints.serving.front_door.ways import key_owners
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.door_configuration import NANO, DoorPrices
from inference_contracts.platform_keys import way_model
from inference_contracts.streaming_job import JobDoor
from inference_contracts.usage_record import UsageRecord
from inference_local.emulator.emulator import Emulator
from inference_local.front_door.counted_tokens import CountedTokens, cost, counted
from inference_local.front_door.door_account import DoorAccount, find_account
from inference_local.front_door.door_client import DoorAnswer, DoorClient
from inference_local.front_door.door_load import DoorLoad, LoadResult
from inference_local.front_door.door_scenario import (
    REQUESTS_IN_BUDGET,
    DoorScenario,
    Spender,
    door_scenario,
)
from inference_local.front_door.front_door_outcome import CanaryOutcome, FrontDoorOutcome, ShedOutcome
from inference_local.front_door.local_door import LocalDoor
from inference_local.processes.child_processes import ProcessGroup
from inference_local.run_state import RunningBatch, RunningDoor, StreamDoor
from inference_local.serving.local_serving import LocalServing

_SEED = 39
#: Answers of the spending team after which a replica is killed, and started again.
_KILL_AT, _START_AT = REQUESTS_IN_BUDGET // 4, REQUESTS_IN_BUDGET // 2
#: Time after a kill in which its requests end.
_KILL_SECONDS = 5.0
#: Longest time until a frontend knows that a caller has hung up.
_ENDED_SECONDS = 0.5
#: Longest time without a new record: those of requests whose replica was killed never come.
_RECORDS_SECONDS, _PERIOD_SECONDS = 1.5, 0.2


@dataclass(frozen=True, slots=True)
class LocalFrontDoor:
    """A front door that answers."""

    blueprint: Blueprint
    door: LocalDoor
    scenario: DoorScenario
    account: DoorAccount
    keys: Mapping[str, str]
    """An API key of each team."""
    serving: LocalServing

    @property
    def running(self) -> RunningDoor:
        """Return it as other commands see it."""
        asked = self.scenario.steady
        return RunningDoor(self.door.base_url, asked.model, asked.team, self.keys)

    def for_job(self, job: StreamingJob) -> StreamDoor:
        """Return it as a streaming job sees it."""
        model = way_model("streaming", job.name)
        [owner] = [each.tag for each in key_owners(self.blueprint.spec) if model in each.models]
        return StreamDoor(
            self.door.base_url.removesuffix("/v1"),
            JobDoor(model=model, team=job.team, secret=self.account.key_secret(owner)),
            self.account.emulator.environment(),
        )

    def run(self, on_progress: Callable[[str], None], *, timed: bool) -> FrontDoorOutcome:
        """Send the load of all callers, and count.

        on_progress: Called with a description of the current action.
        timed: Whether times of answers mean something.
        Raises ProcessDied if a process ends that was not killed, and NotReady if a killed replica does not
            start again.
        """
        return asyncio.run(_Run(self, on_progress).run(timed=timed))


@dataclass(frozen=True, slots=True)
class FrontDoorParts:
    """What a front door on this machine is made of."""

    blueprint: Blueprint
    plan: DoorPlan
    serving: LocalServing
    emulator: Emulator
    """The emulator that the stacks are deployed to."""
    batch: RunningBatch | None
    """The batch API. None without one."""
    directory: Path
    """Folder for configurations and logs."""
    processes: ProcessGroup
    """The group that the processes join."""


@contextmanager
def start_front_door(
    parts: FrontDoorParts, port: int | None, on_progress: Callable[[str], None]
) -> Iterator[LocalFrontDoor]:
    """Make a key for each team, start the replicas, and keep their sockets while the context is open.

    port: Port of the door. None for a free one.
    on_progress: Called with a description of the current action.
    Raises ProcessDied if a process ends, and NotReady if one does not answer in time.
    """
    scenario = door_scenario(parts.plan.configuration)
    account = find_account(parts.emulator, parts.blueprint.metadata.name)
    on_progress("API keys")
    keys = account.make_keys(parts.blueprint)
    with LocalDoor(
        parts.plan,
        scenario.configuration,
        endpoints=parts.serving.deployment_ports(),
        tables=account.tables(),
        directory=parts.directory,
        processes=parts.processes,
        port=port,
        batch_url=parts.batch.base_url if parts.batch else None,
    ) as door:
        door.start(on_progress)
        yield LocalFrontDoor(parts.blueprint, door, scenario, account, keys, parts.serving)


class _Run:
    """One load."""

    def __init__(self, front: LocalFrontDoor, on_progress: Callable[[str], None]) -> None:
        self._front, self._say = front, on_progress
        self._load = DoorLoad(_SEED)
        self._killed: list[float] = []
        self._steps: list[asyncio.Task[None]] = []

    async def run(self, *, timed: bool) -> FrontDoorOutcome:
        scenario, serving = self._front.scenario, self._front.serving
        before = counted(serving)
        async with AsyncExitStack() as stack:
            await self._send_steady(stack, timed=timed)
            middle = counted(serving)
            if scenario.spender is not None:
                self._say(f"team {scenario.spender.asked.team} spends its budget, and a replica is killed")
                client = await self._client(stack, scenario.spender.asked.team)
                await self._load.spend(client, scenario.spender.asked, self._meanwhile)
                await asyncio.gather(*self._steps)
        self._say("usage records")
        records = await self._settled()
        after = counted(serving)
        return outcome_of(
            scenario,
            self._load.result,
            records,
            replicas=len(self._front.door.replicas),
            kills=self._killed,
            counters=(before, middle, after) if after else None,
            ledger_nano=self._ledger_nano(scenario.spender) if scenario.spender else 0,
        )

    async def _send_steady(self, stack: AsyncExitStack, *, timed: bool) -> None:
        """Send everything of teams whose budget is not reached."""
        scenario, load = self._front.scenario, self._load
        steady = await self._client(stack, scenario.steady.team)
        if timed:
            self._say("time that the door adds")
            target = next(
                model.targets[0]
                for model in scenario.configuration.models
                if model.name == scenario.steady.model
            )
            port = self._front.serving.deployment_ports()[target.cluster]
            url = f"http://127.0.0.1:{port}/v1"
            direct = await stack.enter_async_context(DoorClient("", url, "none"))
            await load.compare(steady, direct, scenario.steady, target.served_model)
        if scenario.canary is not None:
            self._say("conversations with a canary")
            await load.converse(await self._client(stack, scenario.canary.team), scenario.canary)
        self._say("streams that are cut")
        before = counted(self._front.serving)
        await load.cut_streams(steady, scenario.steady)
        if before:
            await asyncio.sleep(_ENDED_SECONDS)
            after = counted(self._front.serving)
            load.result.cut_tokens = sum(after[each].output - before[each].output for each in after)
        if scenario.shed is not None:
            self._say("a model that is full")
            team = scenario.shed.urgent.team
            await load.shed(await self._client(stack, team, retries=0), scenario.shed)

    async def _client(self, stack: AsyncExitStack, team: str, **options: int) -> DoorClient:
        door = self._front.door
        return await stack.enter_async_context(
            DoorClient(team, door.base_url, self._front.keys[team], **options)
        )

    async def _meanwhile(self, answers: int) -> None:
        """Kill a replica once, and start it again later."""
        door = self._front.door
        victim = door.replicas[1]
        if answers == _KILL_AT:
            self._killed.append(time.monotonic())
            door.kill(victim)
        elif answers == _START_AT and self._killed:
            self._steps.append(asyncio.create_task(asyncio.to_thread(door.start_again, victim)))

    async def _settled(self) -> dict[str, UsageRecord]:
        """Wait for the records of all answers, and return the records by request."""
        wanted = {
            answer.identifier
            for answer in self._load.result.answers
            if answer.kind in {"whole", "cut"} and answer.identifier
        }
        deadline = time.monotonic() + _RECORDS_SECONDS
        records: dict[str, UsageRecord] = {}
        while True:
            found = await asyncio.to_thread(self._records)
            if len(found) > len(records):
                deadline = time.monotonic() + _RECORDS_SECONDS
            records = found
            if wanted <= records.keys() or time.monotonic() > deadline:
                return records
            await asyncio.sleep(_PERIOD_SECONDS)

    def _records(self) -> dict[str, UsageRecord]:
        """Return the records of callers from outside by request. Jobs of the platform have others."""
        public = {model.name for model in self._front.scenario.configuration.public_models}
        return {each.id: each for each in self._front.account.records() if each.model in public}

    def _ledger_nano(self, spender: Spender) -> int:
        """Return what the ledger has charged a team, with what is still reserved."""
        with valkey.Valkey(unix_socket_path=str(self._front.door.store_socket)) as client:
            spent, reserved = client.hmget(
                f"door:{{{spender.asked.team}}}", "D" if spender.is_daily else "M", "R"
            )
        return int(spent or 0) + int(reserved or 0)


def outcome_of(
    scenario: DoorScenario,
    result: LoadResult,
    records: Mapping[str, UsageRecord],
    *,
    replicas: int,
    kills: Sequence[float],
    counters: tuple[Mapping[str, CountedTokens], ...] | None,
    ledger_nano: int,
) -> FrontDoorOutcome:
    """Count.

    records: The usage records by request.
    replicas: Number of replicas.
    kills: When a replica was killed, in seconds of `time.monotonic`.
    counters: What the frontends had counted before the load, before the budget was spent, and at the end.
        None if they count nothing.
    ledger_nano: What the ledger has charged the team whose budget is reached, in nano-dollars.
    """
    prices = {model.name: model.prices for model in scenario.configuration.models}
    served = {
        target.served_model: model.prices
        for model in scenario.configuration.models
        for target in model.targets
    }
    due = [each for each in (*result.low, *result.spending) if each.kind == "refused"]
    lost = [each for each in result.answers if each.kind == "broken" and _is_near(each.ended, kills)]
    excused = {id(each) for each in (*due, *lost)}
    faults = [
        each for each in result.answers if each.kind not in {"whole", "cut"} and id(each) not in excused
    ]
    limit = scenario.spender.limit_nano / NANO if scenario.spender else 0.0
    spender = scenario.spender.asked.team if scenario.spender else ""
    spent = sum(_usd(each, prices) for each in result.spending)
    of_spender = [each for each in records.values() if each.team == spender]
    steady = None
    if counters is not None:
        before, middle, after = counters
        spent = cost(middle, after, scenario.configuration)
        steady = cost(before, middle, scenario.configuration) - sum(
            _usd(each, served) for each in result.direct
        )
    return FrontDoorOutcome(
        replicas=replicas,
        requests=len(result.answers),
        failures=len(faults),
        failure_reasons=dict(Counter(each.reason for each in faults)),
        refused=len(due),
        refusals=dict(Counter(each.reason for each in due)),
        team=spender,
        spent_usd=spent,
        ledger_usd=ledger_nano / NANO,
        limit_usd=limit,
        overspend_usd=max(0.0, spent - limit) if scenario.spender else 0.0,
        unrecorded_usd=spent - sum(each.cost_nano for each in of_spender) / NANO,
        reserved_usd=sum(each.cost_nano for each in of_spender if each.basis == "reservation") / NANO,
        recorded_usd=sum(each.cost_nano for each in records.values() if each.team != spender) / NANO,
        counted_usd=steady,
        cut_streams=len(result.cut),
        cut_streams_charged=sum(_is_charged(each, records.get(each.identifier)) for each in result.cut),
        cut_tokens_charged=sum(
            records[each.identifier].output_tokens for each in result.cut if each.identifier in records
        ),
        cut_tokens_counted=result.cut_tokens,
        killed_replicas=len(kills),
        lost_with_replica=len(lost),
        added_p50_ms=result.added_ms,
        canary=_canary(scenario, result, records),
        shed=_shed(scenario, result),
        notes=scenario.notes,
    )


def _is_near(moment: float, kills: Sequence[float]) -> bool:
    return any(kill <= moment <= kill + _KILL_SECONDS for kill in kills)


def _usd(answer: DoorAnswer, prices: Mapping[str, DoorPrices]) -> float:
    return CountedTokens(answer.input_tokens, answer.output_tokens).usd(prices[answer.model])


def _is_charged(answer: DoorAnswer, record: UsageRecord | None) -> bool:
    """Return whether a cut stream was charged for all that its caller got, by what the engine had counted."""
    if record is None or record.basis not in {"usage", "cut"}:
        return False
    return record.input_tokens == answer.input_tokens and record.output_tokens >= answer.output_tokens


def _canary(
    scenario: DoorScenario, result: LoadResult, records: Mapping[str, UsageRecord]
) -> CanaryOutcome | None:
    if scenario.canary is None:
        return None
    targets = [
        {records[each.identifier].target for each in answers if each.identifier in records}
        for answers in result.conversations.values()
    ]
    stayed = Counter(next(iter(each)) for each in targets if len(each) == 1)
    return CanaryOutcome(
        model=scenario.canary.model,
        conversations=len(targets),
        by_target=dict(stayed),
        moved=sum(len(each) > 1 for each in targets),
    )


def _shed(scenario: DoorScenario, result: LoadResult) -> ShedOutcome | None:
    if scenario.shed is None:
        return None
    return ShedOutcome(
        model=scenario.shed.urgent.model,
        urgent=len(result.urgent),
        urgent_refused=sum(each.kind == "refused" for each in result.urgent),
        low=len(result.low),
        low_refused=sum(each.kind == "refused" for each in result.low),
        low_retried=result.low_retried,
    )
