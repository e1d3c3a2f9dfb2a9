"""The freeze switch: an SSM parameter that operators set, and that each run reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts.operations_names import FREEZE_VALUES

Controller = Literal["health", "shift"]


@dataclass(frozen=True, slots=True)
class FreezeState:
    """Whether a controller may act."""

    frozen: bool
    """Whether it may not."""
    reason: str = ""
    """Why not, in words. Empty if it may."""
    readable: bool = True
    """Whether the switch could be read. If not, nobody asked for the freeze."""


def read_freeze(ssm: Any, parameter: str, controller: Controller) -> FreezeState:
    """Return whether a controller may act. A switch that cannot be read, or has another value, freezes.

    ssm: Client of SSM.
    controller: Who asks.
    """
    try:
        value = str(ssm.get_parameter(Name=parameter)["Parameter"]["Value"]).strip()
    except (ClientError, BotoCoreError) as error:
        reason = f"the parameter {parameter} cannot be read: {error}"
        return FreezeState(frozen=True, reason=reason, readable=False)
    if value not in FREEZE_VALUES:
        allowed = ", ".join(FREEZE_VALUES)
        reason = f"the parameter {parameter} is {value!r}, must be one of {allowed}"
        return FreezeState(frozen=True, reason=reason, readable=False)
    if value in ("all", controller):
        return FreezeState(frozen=True, reason=f"the parameter {parameter} is {value!r}")
    return FreezeState(frozen=False)
