"""One replica of the policy: its parts, and how they are put together."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config

from front_door.batch_host import BatchHost
from front_door.checkpoints import Checkpoints
from front_door.door_metrics import DoorMetrics
from front_door.envoy_admin import ask_envoy
from front_door.http_server import HttpConnection, Pages
from front_door.key_snapshot import KeySnapshot
from front_door.known_usage import KnownUsage
from front_door.late_keys import late_keys
from front_door.ledger import Ledger
from front_door.ledger_scripts import ALL
from front_door.log_follower import LogFollower
from front_door.open_requests import OpenRequests
from front_door.orphans import OrphanSweep
from front_door.policy import Known, Policy
from front_door.replicas import Replicas
from front_door.reservations import Signer, signing_key
from front_door.settlement import Settlement
from front_door.store import LedgerStore, StoreLostError, StorePlace
from front_door.stored_requests import take_over
from front_door.target_load import TargetLoads
from front_door.usage_delivery import UsageDelivery
from front_door.watched_configuration import WatchedConfiguration
from inference_contracts.door_configuration import DoorConfiguration
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_settings import DoorSettings
from signals.connection import IamToken

_BACKLOG: Final = 4096
_UNDO_SECONDS: Final = 1.0
#: Time for the last lines of the log, and for the last usage records, when the process ends.
_FINISH_SECONDS: Final = 5.0
#: One short try to read the parameter of the batch API: models are served without it.
_ONCE: Final = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 1})


class Replica:
    """All parts of the policy.

    Raises BadConfigurationError if the first configuration cannot be used.
    """

    def __init__(self, settings: DoorSettings) -> None:
        self._settings, self.metrics, self._started = settings, DoorMetrics(), time.time()
        state = Path(settings.state_folder)
        s3 = boto3.client("s3") if settings.configuration.startswith("s3://") else None
        uses_tables = settings.keys_table or settings.ledger_table
        dynamodb: Any = boto3.client("dynamodb") if uses_tables else None
        firehose = boto3.client("firehose") if settings.usage_stream else None
        parameter = settings.batch_parameter
        batch = BatchHost(boto3.client("ssm", config=_ONCE), parameter) if parameter else None
        self._watched = WatchedConfiguration(
            settings.configuration, Path(settings.envoy_folder), state, s3, batch
        )
        configuration = self._watched.first(self._refused)
        self._keys = KeySnapshot(KeyTable(dynamodb, settings.keys_table) if settings.keys_table else None)
        self._store = LedgerStore(store_place(settings), ALL)
        self._loads, usage, opened = TargetLoads(), KnownUsage(), OpenRequests()
        self._replicas = Replicas(self._store, settings.replica, lambda: self._loads.own, self._hear)
        self._checkpoints = (
            Checkpoints(
                dynamodb,
                settings.ledger_table,
                store=self._store,
                replicas=self._replicas,
                budgets=lambda: self.policy.known.budgets,
                is_limited=self._is_limited,
            )
            if settings.ledger_table
            else None
        )
        self.ledger = Ledger(
            self._store,
            configuration.time_zone,
            read_checkpoint=self._checkpoints.read if self._checkpoints else None,
            open_reservations=opened.with_tag,
            known_usage=usage.with_tag,
        )
        signer = Signer(signing_key(state))
        self.policy = Policy(
            Known.of(configuration, self._keys),
            ledger=self.ledger,
            signer=signer,
            loads=self._loads,
            usage=usage,
            opened=opened,
            keys=self._keys,
            metrics=self.metrics,
            replica=settings.replica,
        )
        self._delivery = UsageDelivery(firehose, settings.usage_stream, self.metrics)
        settlement = Settlement(
            self.policy.slots,
            self._delivery.take,
            ledger=self.ledger,
            signer=signer,
            loads=self._loads,
            usage=usage,
            opened=opened,
            metrics=self.metrics,
            replica=settings.replica,
        )
        self._log = LogFollower(
            Path(settings.access_log),
            state / "log-position",
            settlement.settle,
            self._delivery.finished,
            self._reopen_log if settings.envoy_admin else None,
        )
        self._orphans = OrphanSweep(
            lambda: self.policy.known.budgets,
            self.policy.slots,
            store=self._store,
            replicas=self._replicas,
            settlement=settlement,
            opened=opened,
            loads=self._loads,
            envoy_admin=settings.envoy_admin,
        )
        self._usage, self._opened = usage, opened
        self._servers: list[asyncio.Server] = []
        self._pages = Pages(self.metrics, self._is_ready, set())
        self._add_gauges()

    def parts(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield what runs until the process ends."""
        yield self._store.run()
        yield self._keys.run()
        yield self._follow_log()
        yield self._delivery.run()
        yield self._replicas.run()
        yield self._orphans.run()
        yield self._undo()
        yield self._watched.run(self._take, self._refused)
        if self._checkpoints:
            yield self._checkpoints.run()

    async def listen(self) -> None:
        """Listen for Envoy, and for Prometheus."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(FileNotFoundError):
            Path(self._settings.socket).unlink()
        # uvloop closes a server that nothing refers to.
        self._servers = [
            await loop.create_unix_server(
                lambda: HttpConnection(self.policy, self._pages), self._settings.socket, backlog=_BACKLOG
            )
        ]
        if self._settings.metrics_address:
            host, _, port = self._settings.metrics_address.rpartition(":")
            server = await loop.create_server(lambda: HttpConnection(None, self._pages), host, int(port))
            self._servers.append(server)

    async def finish(self) -> None:
        """Wait until the last lines are settled and their records delivered, but not for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_SECONDS):
                while self._log.unread_bytes or self._delivery.waiting:
                    await asyncio.sleep(_FINISH_SECONDS / 100)

    async def _follow_log(self) -> None:
        await take_over(
            self._settings.replica,
            lambda: self.policy.known.budgets,
            self.policy.slots,
            store=self._store,
            opened=self._opened,
            loads=self._loads,
            started=self._started,
        )
        await self._log.run()

    def _take(self, configuration: DoorConfiguration) -> None:
        """Take a new configuration."""
        self.policy.known = Known.of(configuration, self._keys)
        self.ledger.set_zone(configuration.time_zone)

    def _hear(self, others: Mapping[str, float], store_now: int) -> None:
        """Take what the other replicas have in progress, and the store's time."""
        self._loads.set_others(others)
        self.ledger.take_time(store_now)

    def _refused(self) -> None:
        self.metrics.count("configuration_refused")

    def _is_limited(self, key: str) -> bool:
        return self.policy.limits(key)

    def _is_ready(self) -> bool:
        needs_store = self.policy.known.configuration.on_store_loss == "refuse"
        return self._keys.age_seconds != float("inf") and (self._store.has_answered or not needs_store)

    async def _undo(self) -> None:
        while True:
            with contextlib.suppress(StoreLostError):
                await self.ledger.undo_doubtful()
            await asyncio.sleep(_UNDO_SECONDS)

    async def _reopen_log(self) -> None:
        await ask_envoy(self._settings.envoy_admin, "POST", "/reopen_logs")

    def _add_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge(
            "key_snapshot_age_seconds",
            "Age of the API keys as they are known",
            lambda: self._keys.age_seconds,
        )
        gauge("keys_unreadable", "API keys whose items cannot be read", lambda: self._keys.unreadable)
        gauge("platform_keys_late", "Keys of the platform that are missing or not rotated", self._late_keys)
        gauge("store_lost_seconds", "Time for which the store has not answered", self._store.lost_seconds)
        gauge("clocks_differ", "Whether the store's clock is minutes away", lambda: self.ledger.clocks_differ)
        gauge("open_requests", "Requests in progress", lambda: len(self._opened))
        gauge("replicas", "Replicas that this one hears", lambda: len(self._replicas.live))
        gauge(
            "log_unread_bytes", "Bytes of the access log that are not settled", lambda: self._log.unread_bytes
        )
        gauge("settlement_lag_seconds", "Age of the oldest line that is not settled", self._log.lag_seconds)
        gauge("records_waiting", "Usage records that wait for delivery", lambda: self._delivery.waiting)
        gauge("reservations_doubtful", "Reservations to give back", lambda: len(self.ledger.doubtful))
        if self._checkpoints:
            checkpoints = self._checkpoints
            gauge("checkpoint_age_seconds", "Age of the last checkpoint", lambda: checkpoints.age_seconds)
        self.metrics.gauges("target_requests", "Requests in progress at a target", self._targets)
        self.metrics.gauges("budget_spent_ratio", "Share of a budget that is spent", self._shares)

    def _late_keys(self) -> int:
        return late_keys(self.policy.known.configuration.models, self._keys.of_the_platform(), time.time())

    def _targets(self) -> Iterator[tuple[str, float]]:
        for cluster, number in sorted(self._loads.all_in_progress().items()):
            yield f'target="{cluster}"', number

    def _shares(self) -> Iterator[tuple[str, float]]:
        for counter, window, share in self._usage.shares(self.ledger.windows):
            # Names have no quotes and no backslashes: they are of teams, projects, keys and models.
            yield f'scope="{counter.scope}",name="{counter.name}",window="{window}"', share


def store_place(settings: DoorSettings) -> StorePlace:
    """Return how the store is reached. Raises SettingsError if there are no credentials for a cache."""
    if not settings.store_cache:
        return StorePlace(settings.store_host, settings.store_port, settings.store_cluster)
    token = IamToken(settings.store_cache, settings.store_user)
    return StorePlace(
        settings.store_host,
        settings.store_port,
        cluster=True,
        tls=ssl.create_default_context(cafile=settings.store_authority or None),
        credentials=token.get_credentials,
    )
