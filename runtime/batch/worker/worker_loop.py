"""The main loop: takes shards while the endpoint has capacity, until it is stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.shard import ShardMessage
from batch.worker.answer_images import AnswerImages
from batch.worker.bucket_client import BucketClient, Clients
from batch.worker.ceiling_watch import CeilingWatch
from batch.worker.concurrency_limit import ConcurrencyLimit
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


async def run_worker(settings: WorkerSettings, clients: Clients, stop: asyncio.Event) -> None:
    """Work until `stop` is set, then drain.

    settings: What the worker is told.
    stop: Set to stop it.
    """
    limit = ConcurrencyLimit(
        start=settings.in_flight_start,
        minimum=settings.in_flight_least,
        maximum=settings.in_flight_most,
        inflation=Inflation(1 + settings.latency_ratio) if settings.latency_ratio else None,
    )
    async with ModelEndpoint(
        settings.endpoint, connect_seconds=settings.connect_seconds, headers=settings.request_headers
    ) as endpoint:
        runner = LineRunner(
            endpoint,
            limit,
            RetryBudget(settings.retry_ratio),
            Metrics(settings.platform, settings.model),
            settings.attempts,
            settings.request_seconds,
            SuspectTurn(clients.dynamodb, settings.progress_table, settings.model),
        )
        bucket, image_memory = BucketClient(clients.s3, settings.bucket), MemoryBudget(settings.memory_bytes)
        shared = Shared(
            settings,
            bucket,
            runner,
            MemoryBudget(settings.memory_bytes),
            Images(clients.s3, image_memory, max_bytes=settings.image_bytes),
            AnswerImages(bucket, image_memory),
        )
        await _Worker(settings, clients, shared, stop).run()


@dataclass(slots=True)
class _Worker:
    settings: WorkerSettings
    clients: Clients
    shared: Shared
    stop: asyncio.Event
    _held: dict[ShardRun, asyncio.Task[None]] = field(default_factory=dict)
    _orders: itertools.count[int] = field(default_factory=itertools.count)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be capacity for another shard."""

    async def run(self) -> None:
        log("started", model=self.settings.model, endpoint=self.settings.endpoint)
        async with asyncio.TaskGroup() as group:
            telling = [group.create_task(self._write_status()), group.create_task(self._write_metrics())]
            if self.settings.ceilings_table:
                telling.append(group.create_task(self._watch(self.settings.ceilings_table).run()))
            if self.settings.spot_warnings:
                telling.append(group.create_task(self._watch_for_warning()))
            if AGENT in os.environ:
                telling.append(group.create_task(keep_protected(lambda: bool(self._held))))
            receiving = group.create_task(self._receive(group))
            await self.stop.wait()
            self._changed.set()
            await self._drain()
            await receiving
            for task in telling:
                task.cancel()
        self._metrics()
        log("stopped")

    async def _receive(self, group: asyncio.TaskGroup) -> None:
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
            if not self.stop.is_set():
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

    def _watch(self, table: str) -> CeilingWatch:
        limit = self.shared.runner.limit
        return CeilingWatch(self.clients.dynamodb, table, self.settings.model, self._queue(), limit)

    async def _has_room(self) -> bool:
        """Wait until another shard can be taken; return False if the worker must stop."""
        while not self.stop.is_set():
            newest = next(reversed(self._held), None)
            if newest is None or (newest.is_nearly_read and len(self._held) < self.settings.shards_at_once):
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
        run = ShardRun(asked, self.shared, next(self._orders), self._changed.set)
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
        self._held[run] = group.create_task(self._hold(holder))

    async def _hold(self, holder: ShardHolder) -> None:
        try:
            await holder.hold()
        finally:
            del self._held[holder.run]
            self._changed.set()

    async def _drain(self) -> None:
        """Let requests in flight end within a time limit, then give every shard back."""
        log("draining", shards=len(self._held))
        for run in self._held:
            run.drain()
        tasks = list(self._held.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.settings.drain_seconds)
            for task in late:
                task.cancel()

    async def _watch_for_warning(self) -> None:
        await wait_for_warning()
        self.stop.set()

    async def _write_status(self) -> None:
        """Write the status file while the event loop runs."""
        while self.settings.status_file:
            limit = self.shared.runner.limit
            status = {"shards": len(self._held), "inFlight": limit.in_flight, "limit": limit.limit}
            self.settings.status_file.write_text(json.dumps({"time": time.time(), **status}))
            await asyncio.sleep(_STATUS_SECONDS)

    async def _write_metrics(self) -> None:
        while True:
            await asyncio.sleep(self.settings.metrics_seconds)
            self._metrics()

    def _metrics(self) -> None:
        limit = self.shared.runner.limit
        self.shared.runner.metrics.write(in_flight=limit.in_flight, limit=limit.limit, held=len(self._held))
