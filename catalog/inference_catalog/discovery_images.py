"""Images of the discovery store of a platform on Amazon ECS."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "data" / "discovery_images.json"


@cache
def _images() -> dict[str, str]:
    entries = json.loads(_FILE.read_text(encoding="utf-8"))
    return {name: f"{entry['repository']}:{entry['version']}" for name, entry in entries.items()}


def etcd_image() -> str:
    """Return the image of the members. It has no shell."""
    return _images()["etcd"]


def shell_image() -> str:
    """Return a small image with a shell and ``wget``."""
    return _images()["shell"]
