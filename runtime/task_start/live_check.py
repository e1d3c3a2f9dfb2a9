"""Health check of an engine's container: `python3 -m task_start.live_check`.

The engine's port is known only in the container: `task_start` wrote it into a file.
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from pathlib import Path

#: File below the folder of temporary files with the task's address and ports.
PORTS_FILE = "task-ports.json"
_TIMEOUT_SECONDS = 4


def main() -> int:
    """Return 0 if the engine answers ``/live`` at its port ``system``, or else 1."""
    try:
        known = json.loads((Path(tempfile.gettempdir()) / PORTS_FILE).read_text(encoding="utf-8"))
        address = f"http://{known['address']}:{known['ports']['system']}/live"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, timeout=_TIMEOUT_SECONDS):
            return 0
    except (OSError, ValueError, KeyError) as error:
        print(f"not live: {error!r}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
