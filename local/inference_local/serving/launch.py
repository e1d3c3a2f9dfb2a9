"""How a process of a local run is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """The command of a process, and its whole environment."""

    command: list[str]
    environment: Mapping[str, str]
