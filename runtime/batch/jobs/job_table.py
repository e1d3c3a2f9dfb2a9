"""Jobs in the table: made once, moved from state to state by one writer at a time, listed by team."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from batch.contracts.states import FINAL, JobState, can_follow
from batch.jobs import identifiers
from batch.jobs.job import TIMES, Job
from batch.jobs.table import Additions, Table, UnknownCursorError

#: An idempotency key is remembered for this long: longer than any event is delivered again.
_REMEMBERED_SECONDS: Final = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Once:
    """What makes two submissions one.

    Parameters
    ----------
    key
        Key of the submission, unique within the team.
    fingerprint
        Digest of what is submitted: the same key with something else is a mistake.
    seconds
        For how long it is remembered.
    overwrites
        Whether a submission that has this key already is forgotten, instead of found.
    """

    key: str
    fingerprint: str
    seconds: int = _REMEMBERED_SECONDS
    overwrites: bool = False


class KeyReusedError(Exception):
    """An idempotency key that came with something else before."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """A part of a team's list of jobs.

    Parameters
    ----------
    jobs
        The jobs.
    has_more
        Whether the list goes on.
    """

    jobs: tuple[Job, ...]
    has_more: bool


class JobTable:
    """The jobs.

    Parameters
    ----------
    table
        Where they are.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def create(self, job: Job, once: Once | None) -> Job:
        """Make a job, or return the one that was made of the same submission.

        The key is written before the job, with the identifier that the job will have: whoever finds the key
        without a job makes it, so a submission that broke off in between is finished by the next.

        Parameters
        ----------
        job
            The job.
        once
            What makes two submissions one; None if each is a job of its own.

        Raises
        ------
        KeyReusedError
            If the key came with something else before.
        """
        identifier = job.id if once is None else self._identifier(job, once)
        values = {**job.to_values(), "id": identifier}
        item = {
            "id": identifier,
            "record": values,
            "collection": _collection(job.team),
            "order": f"{time.time_ns():019d}#{identifier}",
            "openState": job.state,
        }
        if job.state in FINAL:
            del item["openState"]
        if self._table.put_new(item, now=job.created_at):
            return Job.from_values(values)
        return self._existing(identifier)

    def _identifier(self, job: Job, once: Once) -> str:
        """Return the identifier that belongs to a key: this job's, or that of the one before it."""
        key = f"once#{identifiers.digest(job.team, once.key)}"
        item = {
            "id": key,
            "record": {"job": job.id, "fingerprint": once.fingerprint},
            "expires": job.created_at + once.seconds,
        }
        if once.overwrites:
            self._table.put(item)
            return job.id
        if self._table.put_new(item, now=job.created_at):
            return job.id
        found = self._table.get(key)
        if found is None:  # It was deleted between the two looks: its time was over.
            return self._identifier(job, once)
        if found["fingerprint"] != once.fingerprint:
            raise KeyReusedError(once.key)
        return str(found["job"])

    def _existing(self, identifier: str) -> Job:
        """Return a job that is there."""
        values = self._table.get(identifier)
        if values is None:
            raise LookupError(f"{identifier}: was there and is not")
        return Job.from_values(values)

    def get(self, identifier: str) -> Job | None:
        """Return a job, whosever it is; None if there is none.

        Parameters
        ----------
        identifier
            The job's identifier.
        """
        if not identifiers.is_identifier(identifier, "batch"):
            return None
        values = self._table.get(identifier)
        return None if values is None else Job.from_values(values)

    def of_team(self, team: str, *, after: str | None, limit: int) -> JobPage:
        """Return a part of a team's jobs, newest first.

        Parameters
        ----------
        team
            The team.
        after
            Identifier of the job before the first one; None for the beginning.
        limit
            Most jobs.

        Raises
        ------
        UnknownCursorError
            If the team has no such job.
        """
        if after is not None and not identifiers.is_identifier(after, "batch"):
            raise UnknownCursorError(after)
        page = self._table.page(_collection(team), after=after, limit=limit)
        return JobPage(tuple(map(Job.from_values, page.records)), page.has_more)

    def in_state(self, state: JobState) -> Iterator[Job]:
        """Iterate over the jobs in a state that is not final, oldest first.

        The index that answers is a moment behind: `move` tells whether a job is still there.

        Parameters
        ----------
        state
            The state.
        """
        return map(Job.from_values, self._table.in_state(state))

    def move(
        self,
        identifier: str,
        after: JobState,
        *,
        before: Collection[JobState],
        now: int,
        attempt: int | None = None,
        changes: Mapping[str, Any] | None = None,
        additions: Additions | None = None,
    ) -> Job:
        """Move a job into a state and return it; of two that try at once, one is refused.

        Parameters
        ----------
        identifier
            The job's identifier.
        after
            The state.
        before
            States of which it must be in one.
        now
            Seconds since 1970; the moment that the job keeps of the state.
        attempt
            The attempt on behalf of which it is moved, so that one that was replaced changes nothing; None if
            any may.
        changes
            New values of other fields, as plain values.
        additions
            What is added to sums with it: once, for a job is moved once.

        Raises
        ------
        StateConflictError
            If it is in another state or another attempt.
        ValueError
            If no job may go this way.
        """
        wrong = [state for state in before if not can_follow(state, after)]
        if wrong:
            raise ValueError(f"{after} never follows {', '.join(wrong)}")
        expected: dict[str, Collection[Any]] = {"state": before}
        if attempt is not None:
            expected["attempt"] = [attempt]
        values = self._table.change(
            identifier,
            {"state": after, f"times.{TIMES[after]}": now, **(changes or {})},
            expected=expected,
            open_state=None if after in FINAL else after,
            additions=additions,
        )
        return Job.from_values(values)

    def note(self, job: Job, changes: Mapping[str, Any]) -> Job:
        """Change fields of a job that stays where it is, such as its counts, and return it.

        Parameters
        ----------
        job
            The job as the writer knows it.
        changes
            New values by field, as plain values.

        Raises
        ------
        StateConflictError
            If it is in another state or another attempt by now.
        """
        values = self._table.change(
            job.id,
            changes,
            expected={"state": [job.state], "attempt": [job.attempt]},
            open_state=None if job.state in FINAL else job.state,
        )
        return Job.from_values(values)


def plain(value: Any) -> Any:
    """Return a part of a record as `JobTable.move` and `note` take it.

    Parameters
    ----------
    value
        A data class of `batch.jobs.job` or `batch.contracts`.
    """
    return asdict(value)


def _collection(team: str) -> str:
    """Return the name of a team's list of jobs."""
    return f"{team}#job"
