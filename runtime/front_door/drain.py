"""Lets the requests of a replica end before Envoy does: ``python3 -m front_door.drain SOCKET SECONDS``.

Kubernetes runs it in Envoy's container before it sends SIGTERM, on which Envoy ends at once. Envoy's health
check fails from now on, so that the load balancer sends no more requests, and Envoy closes each connection
after its current request
(https://www.envoyproxy.io/docs/envoy/v1.40.0/intro/arch_overview/operations/draining). On ECS nothing runs
it: there, the load balancer has stopped sending requests before the task gets a signal.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from front_door.envoy_admin import ask_envoy

#: The load balancer learns within this time that the replica takes no more requests: two failed checks, ten
#: seconds apart, or the deregistration of the pod.
_NOTICE_SECONDS: Final = 25.0
_LOOK_SECONDS: Final = 1.0
_ACTIVE: Final = "http.door.downstream_rq_active"
_WRONG: Final = 2


async def drain(admin: str, seconds: float, notice: float = _NOTICE_SECONDS) -> int:
    """Tell Envoy to end, wait until it has no request, and return the number of those that are left.

    admin: Envoy's administration: path of a Unix socket.
    seconds: Longest time to wait.
    notice: Time for which requests may still arrive, in seconds.
    Raises OSError if Envoy does not answer.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    await ask_envoy(admin, "POST", "/healthcheck/fail")
    await asyncio.sleep(min(notice, seconds))
    while (left := await _active(admin)) and loop.time() < end:
        await asyncio.sleep(_LOOK_SECONDS)
    return left


async def _active(admin: str) -> int:
    """Return the number of requests that have no complete answer."""
    text = await ask_envoy(admin, "GET", f"/stats?filter=^{_ACTIVE}$")
    return int(text.partition(b":")[2] or 0)


def main(words: Sequence[str]) -> int:
    """Run the program, and return an exit code."""
    if len(words) != 2 or not words[1].isdecimal():  # noqa: PLR2004 -- socket and seconds
        print("usage: python3 -m front_door.drain SOCKET SECONDS", file=sys.stderr)
        return _WRONG
    try:
        left = asyncio.run(drain(words[0], float(words[1])))
    except (OSError, TimeoutError) as error:
        print(f"error: {words[0]}: {error}", file=sys.stderr)
        return _WRONG
    if left:
        print(f"{left} requests had no complete answer after {words[1]} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
