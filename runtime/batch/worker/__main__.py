"""Starts the worker: `python3 -m batch.worker`. Exit code 2 means that its environment is wrong."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Mapping

import uvloop

from batch.worker.clients import make_clients, use_threads
from batch.worker.settings import Settings, SettingsError, read_settings
from batch.worker.worker import run_worker

_WRONG_SETTINGS = 2
#: Objects that were made and not let go; hundreds belong to each request in flight.
_COLLECT_AT = 20_000


def main(environment: Mapping[str, str]) -> int:
    """Work until SIGTERM or SIGINT, and return the exit code.

    Parameters
    ----------
    environment
        The process's environment.
    """
    try:
        settings = read_settings(environment)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return _WRONG_SETTINGS
    uvloop.run(_run(settings))
    return 0


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    use_threads()
    clients = make_clients()
    # What boto3 knows of AWS stays for ever, and the collector need not go through it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AT)
    await run_worker(settings, clients, stop)


if __name__ == "__main__":
    sys.exit(main(os.environ))
