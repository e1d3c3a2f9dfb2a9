"""Writes the lock of a user's own blueprint."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.spec.lock.differences import Change, differences
from inference_blueprints.spec.lock.lock import Lock, lock_of, lock_path
from inference_blueprints.spec.lock.lock_reader import read_lock
from inference_blueprints.spec.lock.lock_writer import lock_text, write_text
from inference_blueprints.spec.shipped import find, shipped
from inference_contracts.errors import UserError

#: 16 bytes, as in a UUID: two blueprints never get the same identity by chance.
_IDENTITY_BYTES = 16


def own_file(name_or_path: str) -> Path:
    """Return the file of a user's own blueprint, which can have a lock.

    name_or_path: Name or path from the user.
    Raises UserError if it is one of the shipped blueprints, which have no locks.
    """
    path = find(name_or_path)
    if is_shipped(path):
        name = path.stem
        raise UserError(
            f"{name}: is a shipped blueprint, which is not changed; copy it to your own file with "
            f"`blueprints init {name} my-platform.yaml --name my-platform`"
        )
    return path


def is_shipped(path: Path) -> bool:
    """Return whether a file is one of the shipped blueprints."""
    return path.resolve() in {each.resolve() for each in shipped().values()}


def running_lock(loaded: LoadedBlueprint) -> Lock:
    """Return a lock with all versions that a blueprint runs, and with the identity of its present lock."""
    commits = loaded.lock.models if loaded.lock else {}
    identity = loaded.lock.identity if loaded.lock else None
    return replace(lock_of(loaded.written, loaded.blueprint.releases, commits), identity=identity)


def complete_lock(loaded: LoadedBlueprint) -> Lock:
    """Return a lock with all versions that a blueprint runs, and with an identity: new if it has none."""
    lock = running_lock(loaded)
    return lock if lock.identity else replace(lock, identity=secrets.token_hex(_IDENTITY_BYTES))


def keep_lock(loaded: LoadedBlueprint, path: Path) -> list[Change]:
    """Write what is not yet in the lock: versions and an identity; what is there stays.

    A shipped blueprint has no lock, and nothing is written.

    Returns: New pins, and pins that are no longer used; if it is empty, nothing was written.
    Raises UserError if the lock cannot be written.
    """
    if is_shipped(path):
        return []
    lock = complete_lock(loaded)
    changes = differences(loaded.lock, lock)
    if changes:
        write_text(lock_path(path), lock_text(lock))
    return changes


def kept_lock(path: Path) -> Lock | None:
    """Return the lock next to a blueprint; None if there is none.

    path: The blueprint's file.
    Raises BlueprintError if it does not have the format of a lock.
    """
    found = read_lock(lock_path(path))
    return found.lock if found else None
