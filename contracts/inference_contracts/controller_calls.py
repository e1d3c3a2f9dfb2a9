"""How many calls of each controller may run at the same time, and for how many Lambda keeps room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference_contracts.shift_names import SHIFT_CONTROLLER

#: The minute's function continues where it ended: a second call would only wait. Events of several nodes are
#: decided at the same time.
HEALTH_CALLS: Final[Mapping[str, int]] = {"health-minute": 1, "health-signals": 5}
SHIFT_CALLS: Final[Mapping[str, int]] = {SHIFT_CONTROLLER: 1}
CONTROLLER_CALLS: Final[Mapping[str, int]] = {**HEALTH_CALLS, **SHIFT_CALLS}
