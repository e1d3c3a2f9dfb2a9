"""The controllers that a blueprint asks for."""

from __future__ import annotations

from inference_blueprints.spec.types import Spec
from inference_contracts.controller_calls import HEALTH, SHIFT, Controller


def controllers_of(spec: Spec) -> tuple[Controller, ...]:
    """Return the controllers whose sections a blueprint has."""
    sections = ((HEALTH, spec.gpu_health), (SHIFT, spec.capacity_shift))
    return tuple(controller for controller, section in sections if section is not None)
