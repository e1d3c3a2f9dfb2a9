"""Writes the lock of a user's own blueprint."""

from __future__ import annotations

from pathlib import Path

from inference_blueprints.errors import UserError
from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.spec.lock.differences import Change, differences
from inference_blueprints.spec.lock.lock import Lock, lock_of, lock_path
from inference_blueprints.spec.lock.lock_writer import lock_text, write_text
from inference_blueprints.spec.shipped import find, shipped


def own_file(name_or_path: str) -> Path:
    """Return the file of a user's own blueprint, which can have a lock.

    Parameters
    ----------
    name_or_path
        Name or path from the user.

    Raises
    ------
    UserError
        If it is one of the shipped blueprints, which have no locks.
    """
    path = find(name_or_path)
    if is_shipped(path):
        name = path.stem
        raise UserError(
            f"{name}: is a shipped blueprint, which is not changed; copy it to your own file with "
            f"`blueprints init {name} my-platform.yaml`"
        )
    return path


def is_shipped(path: Path) -> bool:
    """Return whether a file is one of the shipped blueprints."""
    return path.resolve() in {each.resolve() for each in shipped().values()}


def running_lock(loaded: LoadedBlueprint) -> Lock:
    """Return a lock with all versions that a blueprint runs: those of its lock, else of this library."""
    commits = loaded.lock.models if loaded.lock else {}
    return lock_of(loaded.written, loaded.blueprint.releases, commits)


def keep_lock(loaded: LoadedBlueprint, path: Path) -> list[Change]:
    """Pin the versions that are not yet in the lock; existing pins stay.

    Returns
    -------
    list of Change
        New pins, and pins that are no longer used; if it is empty, nothing was written.

    Raises
    ------
    UserError
        If the lock cannot be written.
    """
    lock = running_lock(loaded)
    changes = differences(loaded.lock, lock)
    if changes:
        write_text(lock_path(path), lock_text(lock))
    return changes
