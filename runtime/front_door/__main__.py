"""The policy process: ``python3 -m front_door``, configured by environment variables (`door_settings`).

It ends with 2 if they are wrong, or if the first configuration cannot be used. At SIGTERM it goes on while
its Envoy does, whose last streams need it: it ends when Envoy's administration does not answer any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Final

import uvloop
from botocore.exceptions import BotoCoreError, ClientError

from front_door.envoy_admin import ask_envoy
from front_door.replica import Replica
from front_door.watched_configuration import BadConfigurationError
from inference_contracts.door_settings import DoorSettings, DoorSettingsError, read_settings
from signals.store_errors import SettingsError

_WRONG: Final = 2
_LOOK_SECONDS: Final = 0.5


async def run(settings: DoorSettings) -> None:
    """Run until a signal comes and Envoy has ended.

    Raises BadConfigurationError if the first configuration cannot be used.
    """
    replica = Replica(settings)
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(each) for each in replica.parts()]
        await replica.listen()
        # What was loaded until now stays: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        print(json.dumps({"event": "listening", "replica": settings.replica}), flush=True)
        await told.wait()
        while settings.envoy_admin and await _envoy_runs(settings.envoy_admin):
            await asyncio.sleep(_LOOK_SECONDS)
        await replica.finish()
        for task in running:
            task.cancel()


async def _envoy_runs(admin: str) -> bool:
    with contextlib.suppress(OSError, TimeoutError):
        # Its page `/ready` answers 503 while it drains.
        await ask_envoy(admin, "GET", "/server_info")
        return True
    return False


def main(environment: Mapping[str, str]) -> int:
    """Run the policy, and return an exit code."""
    try:
        settings = read_settings(environment)
    except DoorSettingsError as error:
        print(f"error: {error}", file=sys.stderr)
        return _WRONG
    try:
        uvloop.run(run(settings))
    except (BadConfigurationError, SettingsError, OSError, BotoCoreError, ClientError) as error:
        print(f"error: {settings.configuration}: {error}", file=sys.stderr)
        return _WRONG
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
