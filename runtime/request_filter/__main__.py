"""Starts the program behind the filter, and listens in its place.

``python -m request_filter PROGRAM …``: the filter takes host and port of the program's own options, and
gives it a free port of the loopback address, which nothing outside its container reaches. It ends with the
program and passes signals on; if the filter dies, its container, and with it the program, is started again.
``--behind PORT`` in place of ``PROGRAM …``: another container of the pod runs the program, and the filter
ends with a signal. Exit code 2 means that it is described wrongly.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from inference_contracts.request_filter import (
    ALLOWED_VARIABLE,
    BEHIND_OPTION,
    LOOPBACK_PORTS,
    PROGRAM_VARIABLE,
    SETTINGS_VARIABLE,
    FilterSettings,
    port_socket,
)
from request_filter.connections import CallerConnection, Door
from request_filter.suspects import SuspectMemory
from request_filter.worker_watch import WorkerWatch

_WRONG: Final = 2
_LOOPBACK: Final = "127.0.0.1"
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_PYTHON: Final = "python3"
#: Time for answers to reach their callers after the program has ended.
_LAST_BYTES_SECONDS: Final = 1.0
_BACKLOG: Final = 4096
_MOST_FILES: Final = 65_536
#: A program that ends had died at most this long before it was noticed.
_NOTICED_SECONDS: Final = 1.0


class FilterError(Exception):
    """The filter is described wrongly."""


def place_of(words: Sequence[str], settings: FilterSettings) -> tuple[str, int, list[str]]:
    """Return host and port of a program's own options, and its words without them.

    Raises FilterError if it has no port.
    """
    kept: list[str] = []
    found: dict[str, str] = {}
    options = {settings.host_option, settings.port_option}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in options:
            kept.append(word)
            continue
        found[name] = value if equals else next(rest, "")
    port = _port(settings.port_option, found.get(settings.port_option, ""))
    return found.get(settings.host_option, "0.0.0.0"), port, kept  # noqa: S104 -- as the program


def _port(option: str, given: str) -> int:
    if not given.isdigit():
        raise FilterError(f"the program needs {option} PORT, got {given or 'nothing'}")
    return int(given)


class RequestFilter:
    """One filter and its program.

    allowed: Fields and headers that are not removed.
    words: Command of the program.
    """

    def __init__(self, settings: FilterSettings, allowed: frozenset[str], words: Sequence[str]) -> None:
        self._settings = settings
        file = Path(settings.state) if settings.state else None
        self._state = file if file and file.parent.is_dir() else None
        self._host, self._port, self._words = place_of(words, settings)
        self._suspects = SuspectMemory(
            settings.suspect_deaths, settings.refused_seconds, settings.most_refused_seconds
        )
        self._starts = self._words[:1] != [BEHIND_OPTION]
        if self._starts:
            port, self._reservation = free_port()
        else:
            port = _port(BEHIND_OPTION, "".join(self._words[1:]))
        self._program = (_LOOPBACK, port)
        self._door = Door(settings, allowed, self._program, self._suspects, self._poke)
        self._watch: WorkerWatch | None = None

    async def run(self, environment: Mapping[str, str]) -> int:
        """Run the program until it ends, and return its exit code.

        A program of another container is not waited for: the filter runs until a signal comes.
        """
        loop = asyncio.get_running_loop()
        self._restore()
        server = await loop.create_server(
            lambda: CallerConnection(self._door), self._host, self._port, backlog=_BACKLOG
        )
        if not self._starts:
            await self._signal(loop)
            server.close()
            return 0
        program = await asyncio.create_subprocess_exec(*self._command(), env=dict(environment))
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._end, program, number)
        watching = []
        if self._settings.discovery == "frontend":
            self._watch = WorkerWatch(self._program, self._settings.drain_seconds, self._died)
            watching.append(loop.create_task(self._watch.run()))
        code = await program.wait()
        if self._settings.discovery == "program" and not self._door.ends:
            now = loop.time()
            self._died("the engine", now - _NOTICED_SECONDS, now)
        await asyncio.sleep(_LAST_BYTES_SECONDS)
        for task in watching:
            task.cancel()
        server.close()
        return code if code >= 0 else 128 - code

    async def _signal(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a signal to end."""
        told = asyncio.Event()
        for number in _SIGNALS:
            loop.add_signal_handler(number, told.set)
        await told.wait()

    def _command(self) -> list[str]:
        host, port = self._program
        program = sys.executable if self._words[0] == _PYTHON else self._words[0]
        options = (self._settings.host_option, host, self._settings.port_option, str(port))
        return [program, *self._words[1:], *options]

    def _end(self, program: asyncio.subprocess.Process, number: signal.Signals) -> None:
        self._door.ends = True
        with contextlib.suppress(ProcessLookupError):
            program.send_signal(number)

    def _poke(self) -> None:
        if self._watch:
            self._watch.poke()

    def _died(self, worker: str, since: float, now: float) -> None:
        concerned = self._suspects.died(since, now)
        refused = self._suspects.refused
        event = {"event": "worker died", "worker": worker, "requests": concerned, "refused": refused}
        print(json.dumps(event), flush=True)
        if self._state:
            record = self._suspects.as_record(now, time.time())
            self._state.write_text(json.dumps(record), encoding="utf-8")

    def _restore(self) -> None:
        if self._state and self._state.is_file():
            record = json.loads(self._state.read_text(encoding="utf-8"))
            self._suspects.restore(record, asyncio.get_running_loop().time(), time.time())


def _allow_connections() -> None:
    """Raise the limit of open files: a container may begin with 1,024, and a request needs two."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != resource.RLIM_INFINITY:
        wanted = _MOST_FILES if most == resource.RLIM_INFINITY else min(most, _MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))


def free_port() -> tuple[int, socket.socket]:
    """Return a port of the loopback address, and what keeps other filters away from it until it is closed.

    The program listens there only after some seconds. Any port that Linux offers could by then belong to an
    outgoing connection.

    Raises FilterError if no port is free.
    """
    for port in random.sample(LOOPBACK_PORTS, len(LOOPBACK_PORTS)):
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            reservation.bind(port_socket(port))
            socket.create_server((_LOOPBACK, port)).close()
        except OSError:
            reservation.close()
            continue
        return port, reservation
    raise FilterError(
        f"all ports from {LOOPBACK_PORTS[0]} to {LOOPBACK_PORTS[-1]} of {_LOOPBACK} are taken: end programs "
        "that listen there"
    )


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the filter, and return an exit code.

    arguments: The command of the program.
    """
    if not arguments or SETTINGS_VARIABLE not in environment:
        print(f"usage: {SETTINGS_VARIABLE}=FILE python3 -m request_filter PROGRAM", file=sys.stderr)
        return _WRONG
    try:
        settings = FilterSettings.from_text(Path(environment[SETTINGS_VARIABLE]).read_text(encoding="utf-8"))
        allowed = frozenset(each.strip() for each in environment.get(ALLOWED_VARIABLE, "").split(","))
        whole = RequestFilter(settings, allowed, arguments)
    except (FilterError, OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _WRONG
    _allow_connections()
    own = {SETTINGS_VARIABLE, PROGRAM_VARIABLE, ALLOWED_VARIABLE}
    with contextlib.suppress(ImportError):  # faster where the image has it
        import uvloop  # noqa: PLC0415 -- it may be missing

        uvloop.install()
    return asyncio.run(whole.run({name: value for name, value in environment.items() if name not in own}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
