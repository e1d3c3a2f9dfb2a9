"""States of a job, in the words of the OpenAI Batch API (https://platform.openai.com/docs/api-reference/batch)."""

from __future__ import annotations

from typing import Final, Literal, get_args

JobState = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]

#: What may follow each state; a state that nothing follows is final, but for a redrive.
TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    "validating": frozenset({"in_progress", "failed", "cancelling", "expired"}),
    "in_progress": frozenset({"finalizing", "failed", "cancelling", "expired"}),
    "finalizing": frozenset({"completed", "failed", "expired"}),
    "cancelling": frozenset({"cancelled"}),
    "completed": frozenset(),
    # A redrive runs what is not done yet of a job that failed or ran out of time after it was admitted.
    "failed": frozenset({"in_progress"}),
    "expired": frozenset({"in_progress"}),
    "cancelled": frozenset(),
}

FINAL: Final[frozenset[JobState]] = frozenset({"completed", "failed", "expired", "cancelled"})

STATES: Final[tuple[JobState, ...]] = get_args(JobState)


def can_follow(before: JobState, after: JobState) -> bool:
    """Return whether a job may go from one state to another.

    Parameters
    ----------
    before, after
        The two states.
    """
    return after in TRANSITIONS[before]
