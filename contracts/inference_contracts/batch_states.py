"""States of a job, as in the OpenAI Batch API (https://platform.openai.com/docs/api-reference/batch)."""

from __future__ import annotations

from typing import Final, Literal, get_args

JobState = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]

#: Allowed next states. A state without a next state is final.
TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    "validating": frozenset({"in_progress", "failed", "cancelling", "expired"}),
    "in_progress": frozenset({"finalizing", "failed", "cancelling", "expired"}),
    "finalizing": frozenset({"completed", "failed", "expired"}),
    "cancelling": frozenset({"cancelled"}),
    "completed": frozenset(),
    # A redrive runs the unfinished requests of a job that failed or expired after it was admitted.
    "failed": frozenset({"in_progress"}),
    "expired": frozenset({"in_progress"}),
    "cancelled": frozenset(),
}

#: Final states, in the order in which dashboards show them.
ENDS: Final[tuple[JobState, ...]] = ("completed", "failed", "expired", "cancelled")
FINAL: Final = frozenset(ENDS)

STATES: Final[tuple[JobState, ...]] = get_args(JobState)
#: States of a job that has not ended.
OPEN: Final[tuple[JobState, ...]] = tuple(state for state in STATES if state not in FINAL)


def can_follow(before: JobState, after: JobState) -> bool:
    """Return whether a job may go directly from one state to another.

    before, after: The two states.
    """
    return after in TRANSITIONS[before]
