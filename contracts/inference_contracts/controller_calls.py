"""The controllers of a platform, and how many calls of each Lambda keeps room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inference_contracts.operations_names import HEALTH_SERVICE, SHIFT_SERVICE
from inference_contracts.shift_names import SHIFT_CONTROLLER

#: The minute's function continues where it ended: a second call would only wait. Events of several nodes are
#: decided at the same time.
HEALTH_CALLS: Final[Mapping[str, int]] = {"health-minute": 1, "health-signals": 5}
SHIFT_CALLS: Final[Mapping[str, int]] = {SHIFT_CONTROLLER: 1}


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller of the Operations stack."""

    title: str
    """Its name in texts."""
    service: str
    """Dimension of its metrics."""
    minute_function: str
    """Its function that runs once per minute."""
    calls: Mapping[str, int]
    """Calls of each of its functions that may run at the same time."""


HEALTH: Final = Controller("GPU health", HEALTH_SERVICE, "health-minute", HEALTH_CALLS)
SHIFT: Final = Controller("capacity shift", SHIFT_SERVICE, SHIFT_CONTROLLER, SHIFT_CALLS)
CONTROLLERS: Final = (HEALTH, SHIFT)
CONTROLLER_CALLS: Final[Mapping[str, int]] = {**HEALTH_CALLS, **SHIFT_CALLS}
