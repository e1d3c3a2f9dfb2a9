"""The main loop: takes shards while the endpoint has capacity, until it is stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.shard import ShardMessage
from batch.worker.answer_images import AnswerImages
from batch.worker.bucket_client import BucketClient, Clients
from batch.worker.ceiling_watch import CeilingWatch
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.door_keys import DoorKeys
from batch.worker.image_loader import Images
from batch.worker.inflation import Inflation
from batch.worker.line_run import LineRunner
from batch.worker.metrics import Metrics, log
from batch.worker.model_endpoint import ModelEndpoint
from batch.worker.queue import QueueMessage, ShardQueue
from batch.worker.retry_budget import MemoryBudget, RetryBudget
from batch.worker.settings import WorkerSettings
from batch.worker.shard_holder import ShardHolder, ShardReports, ShardTask
from batch.worker.shard_run import ShardRun, Shared
from batch.worker.suspects import SuspectTurn
from inference_contracts.platform_keys import way_model

# Watches for EC2's warning, two minutes before it reclaims a Spot instance.

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html: every 5 s.
_SPOT_PERIOD_SECONDS: Final = 5.0
_LIFETIME_SECONDS: Final = "300"
_SERVICE: Final = "http://169.254.169.254"
_SPOT_TIMEOUT: Final = aiohttp.ClientTimeout(total=2)


async def wait_for_warning() -> None:
    """Return when the instance is about to be reclaimed."""
    base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _SERVICE).rstrip("/")
    async with aiohttp.ClientSession(base, timeout=_SPOT_TIMEOUT) as session:
        while not await _is_warned(session):
            await asyncio.sleep(_SPOT_PERIOD_SECONDS)
    log("spot_warning")


async def _is_warned(session: aiohttp.ClientSession) -> bool:
    """Ask the instance metadata service (IMDSv2). The document does not exist until the warning."""
    try:
        lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": _LIFETIME_SECONDS}
        async with session.put("/latest/api/token", headers=lifetime) as answer:
            token = await answer.text()
        with_token = {"X-aws-ec2-metadata-token": token}
        async with session.get("/latest/meta-data/spot/instance-action", headers=with_token) as answer:
            return answer.ok
    except (aiohttp.ClientError, TimeoutError) as error:
        log("spot_warning_unknown", reason=type(error).__name__)
        return False


# Protects a task of Amazon ECS while it holds a shard, so that scale-in stops idle tasks first.
#
# A task that is stopped gives its shards back and loses no result, but others have to take them up again. The
# worker asks the ECS agent (Amazon ECS Developer Guide, "Amazon ECS task scale-in protection endpoint").
# Protection holds off service auto scaling and deployments, but not Spot or the draining of a host.

#: Variable with the address of the agent. Only tasks of ECS have it.
AGENT: Final = "ECS_AGENT_URI"
#: A worker with a long queue always holds a shard. After this time it may be replaced, as a deployment must
#: not wait for the end of the queue.
_LONGEST_MINUTES: Final = 120
_TASK_PROTECTION_PERIOD_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 30.0
_TASK_PROTECTION_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)


async def keep_protected(is_working: Callable[[], bool]) -> None:
    """Protect the task when it begins to work, and end the protection when it is idle, until cancelled.

    is_working: Returns whether the worker holds a shard.
    """
    protected = False
    async with aiohttp.ClientSession(
        os.environ[AGENT].rstrip("/") + "/", timeout=_TASK_PROTECTION_TIMEOUT
    ) as session:
        while True:
            wanted = is_working()
            if wanted != protected:
                if await _protect(session, wanted=wanted):
                    protected = wanted
                else:
                    await asyncio.sleep(_AGAIN_SECONDS)
            await asyncio.sleep(_TASK_PROTECTION_PERIOD_SECONDS)


async def _protect(session: aiohttp.ClientSession, *, wanted: bool) -> bool:
    """Ask the agent; return whether it did so. Without protection, the worker works all the same."""
    body = {"ProtectionEnabled": wanted} | ({"ExpiresInMinutes": _LONGEST_MINUTES} if wanted else {})
    try:
        async with session.put("task-protection/v1/state", json=body) as answer:
            # The agent answers 200 with `protection`, or with `failure` or `error` and the reason.
            found = await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        log("task_not_protected", reason=f"{type(error).__name__}: {error}")
        return False
    if "protection" not in found:
        log("task_not_protected", reason=str(found)[:500])
        return False
    return True


_STATUS_SECONDS: Final = 5.0
_QUEUE_AGAIN_SECONDS: Final = 1.0
#: Time between two looks whether a deployment has workers, and how many without an answer mean that it has
#: none.
_WORKERS_SECONDS: Final = 5.0
_UNANSWERED: Final = 3
#: Time after which a deployment without workers is tried again through the front door.
_TRY_AGAIN_SECONDS: Final = 60.0


async def run_worker(settings: WorkerSettings, clients: Clients, stop: asyncio.Event) -> None:
    """Work until `stop` is set, then drain.

    settings: What the worker is told.
    stop: Set to stop it.
    """
    metrics = Metrics(settings.platform, settings.model)
    bucket, image_memory = BucketClient(clients.s3, settings.bucket), MemoryBudget(settings.memory_bytes)
    memory = MemoryBudget(settings.memory_bytes)
    images = Images(clients.s3, image_memory, max_bytes=settings.image_bytes)
    answer_images = AnswerImages(bucket, image_memory)
    secret = settings.door_keys_secret
    keys = DoorKeys(clients.secretsmanager, secret) if secret else None
    async with AsyncExitStack() as stack:
        lanes = []
        for way in _ways(settings):
            endpoint = await stack.enter_async_context(
                ModelEndpoint(
                    way.address,
                    connect_seconds=settings.connect_seconds,
                    headers=settings.request_headers,
                    keys=keys,
                )
            )
            limit = ConcurrencyLimit(
                start=settings.in_flight_start,
                minimum=settings.in_flight_least,
                maximum=settings.in_flight_most,
                inflation=Inflation(1 + settings.latency_ratio) if settings.latency_ratio else None,
            )
            runner = LineRunner(
                endpoint,
                limit,
                RetryBudget(settings.retry_ratio),
                metrics,
                settings.attempts,
                settings.request_seconds,
                SuspectTurn(clients.dynamodb, settings.progress_table, settings.model),
                way.door_model,
            )
            shared = Shared(settings, bucket, runner, memory, images, answer_images, way.door_model)
            lanes.append(_Lane(settings, clients, shared, stop, is_lent=way.is_lent))
        await _Worker(settings, metrics, lanes, stop).run()


@dataclass(frozen=True, slots=True)
class _Way:
    """An address to which requests go."""

    address: str
    is_lent: bool = False
    """Whether the deployment behind it may have no workers."""
    door_model: str | None = None
    """Name of the model there, if it is the front door."""


def _ways(settings: WorkerSettings) -> Iterator[_Way]:
    if not settings.door_keys_secret:
        yield _Way(settings.endpoint)
        yield from (_Way(address, is_lent=True) for address in settings.lent_endpoints)
        return
    for deployment in ("", *settings.lent_deployments):
        name = way_model("batch", settings.model, deployment)
        yield _Way(settings.endpoint, bool(deployment), name)


@dataclass(slots=True)
class _Lane:
    """The shards whose requests go to one address."""

    settings: WorkerSettings
    clients: Clients
    shared: Shared
    stop: asyncio.Event
    is_lent: bool
    """Whether the deployment at the address may have no workers."""
    held: dict[ShardRun, asyncio.Task[None]] = field(default_factory=dict)
    _has_workers: bool = field(init=False)
    """Whether shards may be taken. Of a deployment that may have no workers, it is unknown at first."""
    _orders: itertools.count[int] = field(default_factory=itertools.count)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be capacity for another shard."""

    def __post_init__(self) -> None:
        self._has_workers = not self.is_lent

    async def receive(self, group: asyncio.TaskGroup) -> None:
        """Take shards one after the other, each when the one before it is almost completely sent."""
        queue = self._queue()
        while await self._has_room():
            try:
                message = await queue.receive()
            except (BotoCoreError, ClientError) as error:
                log("queue_failed", reason=str(error))
                await asyncio.sleep(_QUEUE_AGAIN_SECONDS)
                continue
            if message is None:
                continue
            if self._has_workers and not self.stop.is_set():
                self._begin(message, queue, group)
                continue
            try:
                await queue.give_back(message)
            except (BotoCoreError, ClientError) as error:
                # It becomes visible again by itself. Shards that this worker holds are still drained.
                log("queue_failed", reason=str(error))

    def _queue(self) -> ShardQueue:
        return ShardQueue(
            self.clients.sqs,
            self.settings.queue_url,
            visibility_seconds=self.settings.visibility_seconds,
            poll_seconds=self.settings.poll_seconds,
        )

    def ceiling(self, table: str) -> CeilingWatch:
        """Return what narrows the lane's limit."""
        limit = self.shared.runner.limit
        return CeilingWatch(self.clients.dynamodb, table, self.settings.model, self._queue(), limit)

    async def watch_workers(self) -> None:
        """Take shards only while the deployment has workers, and give them back when it has none."""
        unanswered = 0
        while True:
            found = await self.shared.runner.endpoint.serves(self.settings.model)
            unanswered = unanswered + 1 if found is None else 0
            has_workers = self._has_workers and unanswered < _UNANSWERED if found is None else found
            if has_workers != self._has_workers:
                address = self.shared.runner.endpoint.base
                log("workers_came" if has_workers else "workers_left", address=address)
                self._has_workers = has_workers
                self.wake()
                if not has_workers:
                    await self.drain()
            await asyncio.sleep(_WORKERS_SECONDS)

    async def try_workers(self) -> None:
        """Take shards through the front door, and give them back while it reaches no worker.

        The door says whom it admits, and not what runs. So the lane tries now and then, and what it cannot
        send there, others take.
        """
        runner = self.shared.runner
        while True:
            self._has_workers = True
            self.wake()
            refused = 0
            while refused < _UNANSWERED:
                await asyncio.sleep(_WORKERS_SECONDS)
                is_refused = bool(self.held) and runner.unreached_at > runner.suspects.answered_at
                refused = refused + 1 if is_refused and not runner.limit.in_flight else 0
            log("workers_left", address=self.shared.door_model)
            self._has_workers = False
            await self.drain()
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    def wake(self) -> None:
        """Look again whether another shard can be taken."""
        self._changed.set()

    async def _has_room(self) -> bool:
        """Wait until another shard can be taken; return False if the worker must stop."""
        while not self.stop.is_set():
            newest = next(reversed(self.held), None)
            has_room = newest is None or (
                newest.is_nearly_read and len(self.held) < self.settings.shards_at_once
            )
            if has_room and self._has_workers:
                return True
            self._changed.clear()
            await self._changed.wait()
        return False

    def _begin(self, message: QueueMessage, queue: ShardQueue, group: asyncio.TaskGroup) -> None:
        try:
            asked = ShardMessage.from_json(message.body)
        except (ValueError, KeyError, TypeError) as error:
            # The message names no task to report to. The queue moves it to the dead-letter queue.
            log("message_unreadable", reason=f"{type(error).__name__}: {error}", received=message.received)
            return
        run = ShardRun(asked, self.shared, next(self._orders), self.wake)
        task = ShardTask(self.clients.stepfunctions, asked.task_token)
        reports = ShardReports(self.clients.dynamodb, self.settings.progress_table, asked)
        holder = ShardHolder(
            message,
            queue,
            task,
            run,
            reports,
            heartbeat_seconds=self.settings.heartbeat_seconds,
            hold_seconds=self.settings.hold_seconds,
        )
        log("shard_taken", job=asked.job, shard=asked.shard, received=message.received)
        self.held[run] = group.create_task(self._hold(holder))

    async def _hold(self, holder: ShardHolder) -> None:
        try:
            await holder.hold()
        finally:
            del self.held[holder.run]
            self.wake()

    async def drain(self) -> None:
        """Let requests in flight end within a time limit, then give every shard back."""
        for run in self.held:
            run.drain()
        tasks = list(self.held.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.settings.drain_seconds)
            for task in late:
                task.cancel()


@dataclass(slots=True)
class _Worker:
    settings: WorkerSettings
    metrics: Metrics
    lanes: Sequence[_Lane]
    stop: asyncio.Event

    async def run(self) -> None:
        log("started", model=self.settings.model, endpoint=self.settings.endpoint)
        async with asyncio.TaskGroup() as group:
            telling = [group.create_task(self._write_status()), group.create_task(self._write_metrics())]
            for lane in self.lanes:
                if self.settings.ceilings_table:
                    telling.append(group.create_task(lane.ceiling(self.settings.ceilings_table).run()))
                if lane.is_lent:
                    by_door = lane.shared.door_model is not None
                    watching = lane.try_workers() if by_door else lane.watch_workers()
                    telling.append(group.create_task(watching))
            if self.settings.spot_warnings:
                telling.append(group.create_task(self._watch_for_warning()))
            if AGENT in os.environ:
                telling.append(group.create_task(keep_protected(lambda: self._held > 0)))
            receiving = [group.create_task(lane.receive(group)) for lane in self.lanes]
            await self.stop.wait()
            log("draining", shards=self._held)
            for lane in self.lanes:
                lane.wake()
            await asyncio.gather(*(lane.drain() for lane in self.lanes))
            await asyncio.gather(*receiving)
            for task in telling:
                task.cancel()
        self._metrics()
        log("stopped")

    @property
    def _held(self) -> int:
        return sum(len(lane.held) for lane in self.lanes)

    @property
    def _limits(self) -> tuple[int, int]:
        """Requests in flight, and how many there may be."""
        limits = [lane.shared.runner.limit for lane in self.lanes]
        return sum(each.in_flight for each in limits), sum(each.limit for each in limits)

    async def _watch_for_warning(self) -> None:
        await wait_for_warning()
        self.stop.set()

    async def _write_status(self) -> None:
        """Write the status file while the event loop runs."""
        while self.settings.status_file:
            in_flight, limit = self._limits
            status = {"shards": self._held, "inFlight": in_flight, "limit": limit}
            self.settings.status_file.write_text(json.dumps({"time": time.time(), **status}))
            await asyncio.sleep(_STATUS_SECONDS)

    async def _write_metrics(self) -> None:
        while True:
            await asyncio.sleep(self.settings.metrics_seconds)
            self._metrics()

    def _metrics(self) -> None:
        in_flight, limit = self._limits
        self.metrics.write(in_flight=in_flight, limit=limit, held=self._held)
