"""The policy process: ``python3 -m front_door``, configured by environment variables (`door_settings`).

It ends with 2 if they are wrong, or if the first configuration cannot be used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import boto3
import uvloop
from botocore.exceptions import BotoCoreError, ClientError

from front_door.door_metrics import DoorMetrics
from front_door.envoy_admin import ask_envoy
from front_door.http_server import HttpConnection
from front_door.key_snapshot import KeySnapshot
from front_door.ledger import Ledger
from front_door.ledger_scripts import RESERVE, SEED, SETTLE
from front_door.log_follower import LogFollower
from front_door.passed_limits import PassedLimits
from front_door.policy import Known, Policy
from front_door.reservations import Signer, signing_key
from front_door.settlement import Settlement
from front_door.store import LedgerStore, StorePlace
from front_door.target_load import TargetLoads
from front_door.usage_delivery import UsageDelivery
from front_door.watched_configuration import BadConfigurationError, WatchedConfiguration
from inference_contracts.door_configuration import DoorConfiguration
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_settings import DoorSettings, DoorSettingsError, read_settings
from signals.connection import IamToken

_WRONG: Final = 2
_BACKLOG: Final = 4096


def store_place(settings: DoorSettings) -> StorePlace:
    """Return how the store is reached."""
    if not settings.store_cache:
        return StorePlace(settings.store_host, settings.store_port, settings.store_cluster)
    tls = ssl.create_default_context(cafile=settings.store_authority or None)
    token = IamToken(settings.store_cache, settings.store_user)
    return StorePlace(
        settings.store_host, settings.store_port, tls=tls, cluster=True, credentials=token.get_credentials
    )


async def run(settings: DoorSettings) -> None:
    """Run until a signal comes. Raises BadConfigurationError if the first configuration cannot be used."""
    state, metrics = Path(settings.state_folder), DoorMetrics()
    clients = {name: boto3.client(name) for name in ("s3", "dynamodb", "firehose") if _needs(settings, name)}
    watched = WatchedConfiguration(settings.configuration, Path(settings.envoy_folder), clients.get("s3"))
    configuration = watched.read()
    assert configuration  # noqa: S101 -- the first is always new
    keys = KeySnapshot(KeyTable(clients["dynamodb"], settings.keys_table) if settings.keys_table else None)
    store = LedgerStore(store_place(settings), (RESERVE, SETTLE, SEED))
    ledger = Ledger(store, configuration.time_zone, None)
    signer, loads, passed = Signer(signing_key(state)), TargetLoads(), PassedLimits()
    usage = UsageDelivery(clients.get("firehose"), settings.usage_stream, metrics)
    policy = Policy(
        Known.of(configuration, keys),
        ledger=ledger,
        signer=signer,
        loads=loads,
        passed=passed,
        metrics=metrics,
    )
    settlement = Settlement(
        policy.slots,
        usage.take,
        ledger=ledger,
        signer=signer,
        loads=loads,
        passed=passed,
        metrics=metrics,
        replica=settings.replica,
    )

    async def reopen() -> None:
        await ask_envoy(settings.envoy_admin, "POST", "/reopen_logs")

    log = LogFollower(
        Path(settings.access_log),
        state / "log-position",
        settlement.settle,
        reopen if settings.envoy_admin else None,
    )

    def take(new: DoorConfiguration) -> None:
        policy.known = Known.of(new, keys)

    metrics.gauges |= {
        "key_snapshot_age_seconds": ("Age of what is known of the API keys", lambda: keys.age_seconds),
        "records_waiting": ("Usage records that wait for delivery", lambda: usage.waiting),
        "store_lost_seconds": ("Time for which the store has not answered", store.lost_seconds),
        "clocks_differ": ("Whether the clock of the store is not this one's", lambda: ledger.clocks_differ),
    }
    loop = asyncio.get_running_loop()
    told, tasks = asyncio.Event(), set[asyncio.Task[None]]()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    with contextlib.suppress(FileNotFoundError):
        Path(settings.socket).unlink()
    async with asyncio.TaskGroup() as group:
        refused = lambda: metrics.count("configuration_refused")  # noqa: E731
        running = [
            group.create_task(each)
            for each in (store.run(), keys.run(), log.run(), usage.run(), watched.run(take, refused))
        ]
        server = await loop.create_unix_server(
            lambda: HttpConnection(policy, metrics, tasks), settings.socket, backlog=_BACKLOG
        )
        print(json.dumps({"event": "ready", "replica": settings.replica}), flush=True)
        await told.wait()
        server.close()
        for task in running:
            task.cancel()


def _needs(settings: DoorSettings, service: str) -> bool:
    return {
        "s3": settings.configuration.startswith("s3://"),
        "dynamodb": bool(settings.keys_table or settings.ledger_table),
        "firehose": bool(settings.usage_stream),
    }[service]


def main(environment: Mapping[str, str]) -> int:
    """Run the policy, and return an exit code."""
    try:
        settings = read_settings(environment)
    except DoorSettingsError as error:
        print(f"error: {error}", file=sys.stderr)
        return _WRONG
    try:
        uvloop.run(run(settings))
    except (BadConfigurationError, OSError, BotoCoreError, ClientError) as error:
        print(f"error: {settings.configuration}: {error}", file=sys.stderr)
        return _WRONG
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
