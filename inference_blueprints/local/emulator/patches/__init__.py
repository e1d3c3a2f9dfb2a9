"""Gaps of the emulator that this project closes, one module each; every module has `apply`."""

from collections.abc import Callable

from inference_blueprints.local.emulator.patches import (
    custom_resource_errors,
    no_docker,
    patient_status,
    worker_lifetime,
)

PATCHES: tuple[Callable[[], None], ...] = (
    custom_resource_errors.apply,
    no_docker.apply,
    patient_status.apply,
    worker_lifetime.apply,
)
