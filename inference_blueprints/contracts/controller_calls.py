"""How many calls of each controller may run at the same time, and for how many Lambda keeps room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: The minute's function continues where it ended: a second call would only wait. Events of several nodes are
#: decided at the same time.
CONTROLLER_CALLS: Final[Mapping[str, int]] = {"health-minute": 1, "health-signals": 5}
