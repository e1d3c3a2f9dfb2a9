"""Images of programs of other projects that run as ECS tasks, and of Python where an image has none."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

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
