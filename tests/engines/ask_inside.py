"""Sends one request and writes the answer, which has to be a 200, to a file.

A separate program, for the network namespace of running engines:
``python -m tests.engines.ask_inside BASE_URL PATH JSON FILE``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.engines.comparison.exchange import send

# Bounds a hang, not a speed.
_SECONDS = 300.0

if __name__ == "__main__":
    base_url, path, body, file = sys.argv[1:]
    response = send(base_url, path, json.loads(body), timeout=_SECONDS)
    if response.status != 200:
        sys.exit(f"{base_url}{path}: {response.status} {response.body}")
    Path(file).write_text(response.body, encoding="utf-8")
