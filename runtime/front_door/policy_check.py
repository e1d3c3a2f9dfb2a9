"""Asks whether the policy process answers: ``python3 -m front_door.policy_check SOCKET PATH``.

It is the health check of its container, and ends with 0 if the answer is 200.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from front_door.envoy_admin import ask_envoy


def main(words: Sequence[str]) -> int:
    """Ask, and return an exit code."""
    place, path = words
    try:
        asyncio.run(ask_envoy(place, "GET", path))
    except (OSError, TimeoutError) as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
