"""Carries connections from listening sockets of this machine to ports inside a network namespace.

A program of its own: ``python -I -S relay.py ROUTES``, where the routes are a JSON list of
``{"listener": FD, "targets": [[PORT, WEIGHT], …]}``. A socket keeps the namespace in which it was made, so
this process, inside the namespace, accepts on sockets that it was handed from outside.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Iterator

_CHUNK_BYTES = 65536


def weighted_turns(weights: list[tuple[int, int]]) -> Iterator[int]:
    """Give each target as many turns as its weight, spread evenly and always in the same order.

    Parameters
    ----------
    weights
        Pairs of target and weight; weights are positive.

    Yields
    ------
    int
        The target whose turn it is.
    """
    total = sum(weight for _, weight in weights)
    credits = {target: 0 for target, _ in weights}
    while True:
        for target, weight in weights:
            credits[target] += weight
        chosen = max(credits, key=credits.__getitem__)
        credits[chosen] -= total
        yield chosen


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until its end, no faster than the receiver takes it, and pass the end on."""
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def relay(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    target: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Copy both directions; the loss of either end closes both."""
    directions = [
        asyncio.ensure_future(carry(client[0], target[1])),
        asyncio.ensure_future(carry(target[0], client[1])),
    ]
    await asyncio.wait(directions, return_when=asyncio.FIRST_EXCEPTION)
    for direction in directions:
        direction.cancel()
    await asyncio.gather(*directions, return_exceptions=True)


async def serve(listener: socket.socket, targets: list[tuple[int, int]]) -> None:
    """Accept for ever; each connection goes to the target whose turn it is."""
    turns = weighted_turns(targets)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = await asyncio.open_connection("127.0.0.1", next(turns))
        except (
            OSError
        ):  # nobody listens there yet: the client sees its connection closed, as it would directly
            writer.close()
            return
        await relay((reader, writer), target)
        writer.close()
        target[1].close()

    server = await asyncio.start_server(accept, sock=listener)
    await server.serve_forever()


async def main(routes: list[dict[str, object]]) -> None:
    """Serve every route."""
    await asyncio.gather(
        *(
            serve(socket.socket(fileno=route["listener"]), [tuple(target) for target in route["targets"]])
            for route in routes
        )
    )


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
