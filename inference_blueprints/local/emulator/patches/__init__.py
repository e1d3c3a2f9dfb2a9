"""Gaps of the emulator that this project closes, one module each; every module has `apply`."""

from collections.abc import Callable

from inference_blueprints.local.emulator.patches import no_docker, worker_lifetime

PATCHES: tuple[Callable[[], None], ...] = (no_docker.apply, worker_lifetime.apply)
