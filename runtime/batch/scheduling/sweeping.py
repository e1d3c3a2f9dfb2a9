"""Deletes objects whose time has come, a bounded number in each run of the scheduler."""

from __future__ import annotations

from collections.abc import Callable

from batch.jobs.deletions import DeletionTable
from batch.objects import Objects


def sweep(deletions: DeletionTable, objects: Objects, *, now: float, has_time: Callable[[], bool]) -> None:
    """Delete the objects that are due. Every step can be repeated; the next run continues.

    has_time: Returns whether another thousand objects may be deleted.
    """
    for deletion in deletions.due(now):
        for prefix in deletion.prefixes:
            if not objects.delete_below(prefix, has_time=has_time):
                return
        deletions.forget(deletion)
