"""Carries connections from listening sockets of this machine to ports inside a network namespace.

A program of its own: ``python -m inference_blueprints.local.serving.relay ROUTES``, where the routes are a
JSON list of ``{"listener": FD, "targets": [[PORT, WEIGHT], …], "answerTokens": N}``. A socket keeps the
namespace in which it was made, so this process, inside the namespace, accepts on sockets that it was handed
from outside.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inference_blueprints.local.serving.answer_length import carry, forward_requests

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Route:
    """Where the connections of one listening socket go.

    Parameters
    ----------
    targets
        Ports with their weights, which are positive.
    answer_tokens
        Length of the answer for requests that state none.
    """

    targets: tuple[tuple[int, float], ...]
    answer_tokens: int


def turns(targets: Sequence[tuple[int, float]]) -> Iterator[int]:
    """Give each target as many turns as its weight, spread evenly and always in the same order.

    Parameters
    ----------
    targets
        Targets with their weights.

    Yields
    ------
    int
        The target whose turn it is.
    """
    total = sum(weight for _, weight in targets)
    standing = dict.fromkeys((target for target, _ in targets), 0.0)
    while True:
        for target, weight in targets:
            standing[target] += weight
        chosen = max(standing, key=standing.__getitem__)
        standing[chosen] -= total
        yield chosen


async def serve(listener: socket.socket, route: Route) -> None:
    """Accept for ever; each connection goes to the target whose turn it is."""
    targets = turns(route.targets)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_target, to_target = await asyncio.open_connection(_LOOPBACK, next(targets))
        except OSError:  # nobody listens there: the client sees its connection closed
            writer.close()
            return
        requests = asyncio.ensure_future(forward_requests(reader, to_target, route.answer_tokens))
        answers = asyncio.ensure_future(carry(from_target, writer))
        await _until_either_fails(requests, answers)
        writer.close()
        to_target.close()

    server = await asyncio.start_server(accept, sock=listener)
    await server.serve_forever()


async def _until_either_fails(*directions: asyncio.Future[None]) -> None:
    """Wait for both directions to end; the loss of one ends the other."""
    await asyncio.wait(directions, return_when=asyncio.FIRST_EXCEPTION)
    for direction in directions:
        direction.cancel()
    for outcome in await asyncio.gather(*directions, return_exceptions=True):
        # A peer that goes away is an ordinary end; anything else is a fault of this program.
        if isinstance(outcome, Exception) and not isinstance(outcome, (OSError, EOFError)):
            raise outcome


async def main(arguments: str) -> None:
    """Serve every route of the JSON list."""
    await asyncio.gather(
        *(
            serve(
                socket.socket(fileno=entry["listener"]),
                Route(tuple((port, weight) for port, weight in entry["targets"]), entry["answerTokens"]),
            )
            for entry in json.loads(arguments)
        )
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
