"""Starts the worker: `python3 -m batch.worker`. Exit code 2 means that its environment is wrong."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Mapping

import uvloop

from batch.variables import BatchSettingsError
from batch.worker.bucket_client import make_clients, use_threads
from batch.worker.settings import WorkerSettings, read_settings
from batch.worker.worker_loop import run_worker

_WRONG_SETTINGS = 2
#: Threshold of the garbage collector: objects allocated minus objects freed. Each request in flight holds
#: hundreds.
_COLLECT_AT = 20_000


def main(environment: Mapping[str, str]) -> int:
    """Work until SIGTERM or SIGINT, and return the exit code."""
    try:
        settings = read_settings(environment)
    except BatchSettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return _WRONG_SETTINGS
    uvloop.run(_run(settings))
    return 0


async def _run(settings: WorkerSettings) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    use_threads()
    clients = make_clients(reads_keys=settings.door_keys_secret is not None)
    # boto3's data about AWS lives as long as the process, so the garbage collector can skip it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AT)
    await run_worker(settings, clients, stop)


if __name__ == "__main__":
    sys.exit(main(os.environ))
