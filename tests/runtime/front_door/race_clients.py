"""Clients that ask several replicas at once, and a stand-in of their Envoys that logs what has ended."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_contracts import door_headers
from tests.runtime.front_door.policy_process import CHAT, Answer, PolicyProcess, log_line, write_lines

#: What each request really uses, and costs with the prices of `policy_process`.
INPUT_TOKENS, OUTPUT_TOKENS = 12, 5
COST = INPUT_TOKENS * 200 + OUTPUT_TOKENS * 800


@dataclass
class Envoy:
    """The Envoy beside a policy. When it dies, what it has in progress is cut and never logged."""

    policy: PolicyProcess
    is_alive: bool = True


@dataclass
class Race:
    """100 clients that ask until they are told to stop."""

    envoys: Sequence[Envoy]
    key: str
    finished: int = 0
    cut: int = 0
    refused: int = 0
    many: int = 0
    """Refused because too many requests were in progress."""
    failed: int = 0
    stops: bool = False

    @property
    def spent(self) -> int:
        """Nano-dollars of all answers, also of those that were cut when their replica died."""
        return (self.finished + self.cut) * COST

    async def run(self, clients: int, until: Callable[[], Awaitable[None]]) -> None:
        """Run clients until a function returns."""
        tasks = [
            asyncio.create_task(self._client(random.Random(number)))  # noqa: S311 -- which replica
            for number in range(clients)
        ]
        await until()
        self.stops = True
        await asyncio.gather(*tasks)

    async def _client(self, chance: random.Random) -> None:
        while not self.stops:
            envoy = chance.choice([each for each in self.envoys if each.is_alive])
            request = f"{chance.getrandbits(128):032x}"
            answer = await ask(envoy.policy, self.key, request)
            if answer is None or answer.status == 503:
                self.failed += 1
                if envoy.is_alive:  # Envoy has no decision, and logs that it has refused the request
                    line = json.dumps({"id": request, "status": 503})
                    write_lines(Path(envoy.policy.settings.access_log), [line])
                await asyncio.sleep(0.1)
            elif answer.status != 200:
                assert answer.code in {"insufficient_quota", "rate_limit_exceeded"}, answer
                if answer.code == "insufficient_quota":
                    self.refused += 1
                else:
                    self.many += 1
                await asyncio.sleep(0.1)
            else:
                await asyncio.sleep(chance.uniform(0.05, 0.2))
                if not envoy.is_alive:
                    self.cut += 1
                    continue
                self.finished += 1
                line = log_line(answer, **{"in": INPUT_TOKENS, "out": OUTPUT_TOKENS})
                write_lines(Path(envoy.policy.settings.access_log), [line])


async def ask(policy: PolicyProcess, key: str, request: str) -> Answer | None:
    """Ask a policy over a connection of its own. None if it does not answer.

    request: Identifier that Envoy has given the request.
    """
    head = (
        f"POST {door_headers.DECIDE}{CHAT} HTTP/1.1\r\nhost: policy\r\ncontent-length: 0\r\n"
        f"authorization: Bearer {key}\r\nx-request-id: {request}\r\n"
        f"{door_headers.MODEL}: m\r\n{door_headers.STREAM}: true\r\n"
        f"{door_headers.BYTES}: 100\r\n{door_headers.MAX_TOKENS}: {OUTPUT_TOKENS}\r\n\r\n"
    )
    try:
        reader, writer = await asyncio.open_unix_connection(policy.settings.socket)
    except OSError:
        return None
    try:
        writer.write(head.encode())
        raw = await reader.readuntil(b"\r\n\r\n")
        status, *rows = raw.decode().split("\r\n")
        headers = dict(row.split(": ", 1) for row in rows if row)
        body = await reader.readexactly(int(headers["content-length"]))
        return Answer(int(status.split(" ")[1]), headers, body)
    except (OSError, asyncio.IncompleteReadError):
        return None
    finally:
        writer.close()
