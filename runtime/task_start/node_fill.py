"""Fills a host's copy of a model before the engine starts: `python3 -m task_start.node_fill`.

The same program as on a node of EKS (`weights.node_cache`, whose variables it reads), but it ends when the
copy is complete. From then on the engine itself holds the lock (`task_start.weights_locks`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from task_start.task_credentials import with_task_credentials
from weights.node_cache import COPY_ERRORS, start
from weights.settings import read_node_cache_settings


def main(environment: Mapping[str, str]) -> int:
    """Fill the copy and return the exit code."""
    # An interrupted copy is continued by the next task. A process with ID 1 has no default for SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    try:
        start(read_node_cache_settings(environment), with_task_credentials(environment))
    except COPY_ERRORS as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
