"""Lets jobs in and sets how many shards of each are in work at once.

Whatever it does can be done again: a run that broke off is finished by the next, a minute later.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from batch.contracts.keys import JobKeys
from batch.jobs.configuration import Configuration
from batch.jobs.executions import Executions
from batch.jobs.job import Job
from batch.jobs.job_table import JobTable
from batch.jobs.spending import SpendingTable, month_of
from batch.jobs.table import StateConflictError
from batch.objects import Objects
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.allotment import WaitingOrRunning, allot
from batch.scheduling.budgets import admitted

# Longer than the request takes that begins a job.
_BEGUN_SECONDS: Final = 300
#: Running jobs whose places change in a run. Step Functions lets an account list and change a map once a
#: second (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
MOST_RESIZES: Final = 50
#: Name of the state whose map of shards is run; its map runs carry it.
MAP_LABEL: Final = "Shards"
# The execution went on, or ended, before it was told.
_NOBODY_WAITS: Final = {"TaskTimedOut", "TaskDoesNotExist"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that wants places.

    Parameters
    ----------
    job
        Its record.
    admission
        Its present attempt.
    shards
        Shards that are not done.
    """

    job: Job
    admission: Admission
    shards: int


class Scheduler:
    """The scheduler.

    Parameters
    ----------
    configuration
        Queues and teams.
    jobs, admissions, spending
        The records.
    objects
        The batch bucket.
    executions
        The state machine.
    step_functions
        A boto3 client of Step Functions.
    queue_urls
        Where the shards of a model are sent, by the model's name.
    """

    def __init__(
        self,
        *,
        configuration: Configuration,
        jobs: JobTable,
        admissions: AdmissionTable,
        spending: SpendingTable,
        objects: Objects,
        executions: Executions,
        step_functions: Any,
        queue_urls: Mapping[str, str],
    ) -> None:
        self._configuration = configuration
        self._jobs = jobs
        self._admissions = admissions
        self._spending = spending
        self._objects = objects
        self._executions = executions
        self._step_functions = step_functions
        self._queue_urls = queue_urls

    def run(self, *, now: float, resizes: int = MOST_RESIZES) -> None:
        """Stop what is too late, then allot the places of every model.

        Parameters
        ----------
        now
            Seconds since 1970.
        resizes
            Running jobs whose places may change; others keep theirs until the next run.
        """
        by_model: dict[str, list[Candidate]] = defaultdict(list)
        candidates = list(self._candidates(now))
        for candidate in self._within_budgets(candidates, now):
            by_model[candidate.job.model].append(candidate)
        for model, candidates in by_model.items():
            allotted = allot(map(_wanted, candidates), self._places(model), now=now)
            for candidate in candidates:
                places, before = allotted.get(candidate.job.id, 0), candidate.admission.places
                if places in {0, before} or (before is not None and resizes == 0):
                    continue
                resizes -= before is not None
                self._give(candidate, places, now=now)

    def _within_budgets(self, candidates: Iterable[Candidate], now: float) -> Iterator[Candidate]:
        """Iterate over candidates that their teams can pay; those that run are paid first."""
        spent = self._spent(now)
        for candidate in sorted(
            candidates, key=lambda each: (each.admission.places is None, _wanted(each).rank(now))
        ):
            if self._is_within_budget(candidate, spent):
                yield candidate

    def _spent(self, now: float) -> dict[str, float]:
        """Return what each team has spent this month, with jobs that are about to end by their estimate."""
        month = month_of(now)
        spent = {team.name: self._spending.usd(team.name, month) for team in self._configuration.teams}
        for each in admitted(self._jobs, self._admissions, ("finalizing", "cancelling")):
            if each.job.team in spent:
                spent[each.job.team] += each.admission.usd
        return spent

    def _candidates(self, now: float) -> Iterator[Candidate]:
        """Iterate over jobs that wait or run; those that are too late are stopped."""
        for state in ("validating", "in_progress"):
            for job in self._jobs.in_state(state):
                if job.expires_at <= now:
                    self._expire(job, now)
                    continue
                admission = self._admissions.of(job)
                if admission is not None:
                    yield Candidate(job, admission, self._shards_left(admission))
                elif now - job.created_at > _BEGUN_SECONDS:
                    # Whoever submitted it may have broken off before this; starting it again changes nothing.
                    self._executions.start(job)

    def _expire(self, job: Job, now: float) -> None:
        """Stop a job that is too late, and end it here if it never began: nobody else will."""
        if not self._executions.stop(job, cause="the deadline has passed"):
            with suppress(StateConflictError):
                self._jobs.move(
                    job.id, "expired", before=["validating", "in_progress"], now=int(now), attempt=job.attempt
                )

    def _shards_left(self, admission: Admission) -> int:
        """Return how many shards of an attempt are not done; one at least, until the map itself has ended."""
        if admission.places is None:
            return admission.shards
        keys = JobKeys(admission.job)
        done = turns_done(self._objects.sizes(keys.parts))
        return max(admission.shards - (done - admission.shards_before), 1)

    def _places(self, model: str) -> int:
        """Return the shards that the model's workers hold at once."""
        queues = [queue for queue in self._configuration.queues if queue.model == model]
        return max((queue.capacity.places for queue in queues), default=0)

    def _is_within_budget(self, candidate: Candidate, spent: dict[str, float]) -> bool:
        """Return whether the team may still begin this job; what it begins is spent from then on."""
        name, usd = candidate.job.team, candidate.admission.usd
        team = self._configuration.team(name)
        if candidate.admission.places is None and (
            team is None or spent[name] + usd > team.monthly_budget_usd
        ):
            return False
        spent[name] = spent.get(name, 0.0) + usd
        return True

    def _give(self, candidate: Candidate, places: int, *, now: float) -> None:
        """Give a job its places."""
        if candidate.admission.places is None:
            self._admit(candidate, places, now=now)
        else:
            self._resize(candidate.job, places)
        self._admissions.put(candidate.admission.with_places(places), now=int(now))

    def _admit(self, candidate: Candidate, places: int, *, now: float) -> None:
        """Let a job in."""
        job = candidate.job
        if job.state == "validating":
            try:
                self._jobs.move(
                    job.id, "in_progress", before=["validating"], now=int(now), attempt=job.attempt
                )
            except StateConflictError:
                return  # It was cancelled in this moment.
        output = {"places": places, "queueUrl": self._queue_urls[job.model]}
        try:
            self._step_functions.send_task_success(
                taskToken=candidate.admission.task_token, output=json.dumps(output)
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in _NOBODY_WAITS:
                raise

    def _resize(self, job: Job, places: int) -> None:
        """Change how many shards of a job are in work at once."""
        runs = self._step_functions.list_map_runs(executionArn=self._executions.arn(job))["mapRuns"]
        for run in runs:
            if f"/{MAP_LABEL}:" in run["mapRunArn"] and "stopDate" not in run:
                self._step_functions.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=places)


def turns_done(parts: Iterable[str]) -> int:
    """Return how many turns of shards are done.

    Parameters
    ----------
    parts
        Keys of all parts of a job.
    """
    return sum(key.endswith("/done.json") for key in parts)


def _wanted(candidate: Candidate) -> WaitingOrRunning:
    """Return a job as places are allotted."""
    job, admission = candidate.job, candidate.admission
    return WaitingOrRunning(
        job=job.id,
        team=job.team,
        priority=job.priority,
        submitted=job.created_at,
        deadline=job.expires_at,
        shards=candidate.shards,
        seconds_per_shard=admission.seconds_per_shard,
        is_running=admission.places is not None,
    )
