"""Patches for gaps of the emulator, one module each. Every module has `apply`."""

from collections.abc import Callable

from inference_blueprints.local.emulator.patches import (
    custom_resource_errors,
    distributed_maps,
    no_docker,
    stack_status_polling,
    task_tokens,
    worker_lifetime,
)

PATCHES: tuple[Callable[[], None], ...] = (
    custom_resource_errors.apply,
    distributed_maps.apply,
    no_docker.apply,
    stack_status_polling.apply,
    task_tokens.apply,
    worker_lifetime.apply,
)
