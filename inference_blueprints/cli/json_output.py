"""Standard output of `--output json`: one JSON document per command."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2), flush=True)


def print_progress(line: str) -> None:
    """Print a line on standard error, so that standard output holds the result only."""
    print(line, file=sys.stderr, flush=True)
