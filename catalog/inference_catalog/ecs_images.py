"""Images of programs of other projects that run as ECS tasks, those of the discovery store among them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

# Images of the discovery store of a platform on Amazon ECS.

_FILE = Path(__file__).resolve().parent / "data" / "discovery_images.json"


@cache
def _store_images() -> dict[str, str]:
    entries = json.loads(_FILE.read_text(encoding="utf-8"))
    return {name: f"{entry['repository']}:{entry['version']}" for name, entry in entries.items()}


def etcd_image() -> str:
    """Return the image of the members. It has no shell."""
    return _store_images()["etcd"]


def shell_image() -> str:
    """Return a small image with a shell and ``wget``."""
    return _store_images()["shell"]


#: Programs that have an image.
EcsProgram = Literal["prometheus", "cloudwatch-agent", "python", "dcgm-exporter"]


def ecs_image(program: EcsProgram) -> str:
    """Return the image of a program.

    Parameters
    ----------
    program
        The program.
    """
    return _images()[program]


@cache
def _images() -> dict[str, str]:
    text = (Path(__file__).parent / "data" / "ecs_images.json").read_text("utf-8")
    return {name: entry["image"] for name, entry in json.loads(text).items()}
