"""The main loop: takes shards while the endpoint has capacity, until it is stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from dataclasses import dataclass, field
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.shard import ShardMessage
from batch.worker.answer_images import AnswerImages
from batch.worker.bucket_client import BucketClient
from batch.worker.ceiling_watch import CeilingWatch
from batch.worker.clients import Clients
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.image_loader import Images
from batch.worker.inflation import Inflation
from batch.worker.line_run import LineRunner
from batch.worker.memory_budget import MemoryBudget
from batch.worker.metrics import Metrics, log
from batch.worker.model_endpoint import ModelEndpoint
from batch.worker.queue import QueueMessage, ShardQueue
from batch.worker.retry_budget import RetryBudget
from batch.worker.settings import WorkerSettings
from batch.worker.shard_holder import ShardHolder
from batch.worker.shard_reports import ShardReports
from batch.worker.shard_run import ShardRun, Shared
from batch.worker.spot import wait_for_warning
from batch.worker.suspect_turn import SuspectTurn
from batch.worker.task import ShardTask
from batch.worker.task_protection import AGENT, keep_protected

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
            if self.stop.is_set():
                await queue.give_back(message)
            else:
                self._begin(message, queue, group)

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
