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
    """Return the file of a blueprint that a lock may be written beside.

    Parameters
    ----------
    name_or_path
        As the user named it.

    Raises
    ------
    UserError
        If it is one of the shipped blueprints, which have no locks.
    """
    path = find(name_or_path)
    if is_shipped(path):
        name = path.stem
        raise UserError(
            f"{name}: is a shipped blueprint, which follows its release; "
            f"`blueprints init {name} my-platform.yaml` copies it to a file of yours, which can have a lock"
        )
    return path


def is_shipped(path: Path) -> bool:
    """Return whether a file is one of the shipped blueprints."""
    return path.resolve() in {each.resolve() for each in shipped().values()}


def running_lock(loaded: LoadedBlueprint) -> Lock:
    """Return the lock of what a blueprint runs now: what its lock holds, and this library's for the rest."""
    commits = loaded.lock.models if loaded.lock else {}
    return lock_of(loaded.written, loaded.blueprint.releases, commits)


def keep_lock(loaded: LoadedBlueprint, path: Path) -> list[Change]:
    """Pin what a blueprint runs now and no lock holds yet; what is pinned stays.

    Returns
    -------
    list of Change
        What is pinned now, or no longer used; where it is empty nothing was written.

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
