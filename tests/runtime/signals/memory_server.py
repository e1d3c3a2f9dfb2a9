"""A server in this process that knows the commands of readers and writers, for tests that start no program.

It answers as Valkey does, as far as tests ask. The same tests run against a real server in the lane `clock`.
"""

from __future__ import annotations

import hashlib
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from signals.store import _WRITE_IF_NEWER

_SCRIPT = _WRITE_IF_NEWER.encode()
_DIGEST = hashlib.sha1(_SCRIPT, usedforsecurity=False).hexdigest().encode()


class _ServerError(Exception):
    """What the server says instead of an answer."""


class MemoryServer(socketserver.ThreadingTCPServer):
    """Keys and the script, shared by all connections."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self._hashes: dict[bytes, dict[bytes, bytes]] = {}
        self._expires: dict[bytes, int] = {}
        self._texts: dict[bytes, bytes] = {}
        self._knows_script = False
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def answer(self, command: bytes, words: list[bytes]) -> Any:
        """Run one command, and none at the same time."""
        commands: dict[bytes, Callable[..., Any]] = {
            b"CLIENT": lambda *_: "OK",
            b"PING": lambda: "PONG",
            b"FLUSHALL": self._flush,
            b"SCRIPT FLUSH": self._forget,
            b"SET": self._set,
            b"HGET": self._hget,
            b"HSET": self._hset,
            b"EXPIRETIME": lambda key: self._expires.get(key, -1),
            b"EVAL": self._eval,
            b"EVALSHA": self._evalsha,
        }
        with self._lock:
            return commands[command](*words)

    def _flush(self) -> str:
        for store in (self._hashes, self._expires, self._texts):
            store.clear()
        return "OK"

    def _forget(self) -> str:
        self._knows_script = False
        return "OK"

    def _set(self, key: bytes, value: bytes) -> str:
        self._texts[key] = value
        return "OK"

    def _hash(self, key: bytes) -> dict[bytes, bytes]:
        if key in self._texts:
            raise _ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")
        if self._expires.get(key, time.time() + 1) <= time.time():
            del self._hashes[key], self._expires[key]
        return self._hashes.get(key, {})

    def _hget(self, key: bytes, field: bytes) -> bytes | None:
        return self._hash(key).get(field)

    def _hset(self, key: bytes, *pairs: bytes) -> int:
        self._hashes[key] = {**self._hash(key), **dict(zip(pairs[::2], pairs[1::2], strict=True))}
        return len(pairs) // 2

    def _eval(self, script: bytes, *words: bytes) -> int:
        if script != _SCRIPT:
            raise _ServerError("ERR another script")
        self._knows_script = True
        return self._write_if_newer(*words)

    def _evalsha(self, digest: bytes, *words: bytes) -> int:
        if digest != _DIGEST or not self._knows_script:
            raise _ServerError("NOSCRIPT No matching script.")
        return self._write_if_newer(*words)

    def _write_if_newer(self, _: bytes, key: bytes, version: bytes, record: bytes, expires: bytes) -> int:
        stored = self._hget(key, b"v")
        if stored is not None and int(stored) >= int(version):
            return 0
        self._hset(key, b"v", version, b"d", record)
        self._expires[key] = int(expires)
        return 1


class _Session(socketserver.StreamRequestHandler):
    """One connection."""

    server: MemoryServer
    disable_nagle_algorithm = True

    def handle(self) -> None:
        while begin := self.rfile.readline():
            words = [self._word() for _ in range(int(begin[1:]))]
            if words[0] == b"SCRIPT":
                words[:2] = [b" ".join(words[:2])]
            try:
                answer = self.server.answer(words[0], words[1:])
            except _ServerError as error:
                self.wfile.write(f"-{error}\r\n".encode())
            else:
                self.wfile.write(_encoded(answer))

    def _word(self) -> bytes:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2]


def _encoded(answer: Any) -> bytes:
    if answer is None:
        return b"$-1\r\n"
    if isinstance(answer, int):
        return b":%d\r\n" % answer
    if isinstance(answer, str):
        return b"+%s\r\n" % answer.encode()
    return b"$%d\r\n%s\r\n" % (len(answer), answer)


@contextmanager
def memory_server() -> Iterator[MemoryServer]:
    """Serve until the ``with`` block ends."""
    with MemoryServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
