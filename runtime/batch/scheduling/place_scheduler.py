"""Admits jobs and sets how many shards of each job run at the same time.

Every step can be repeated. The next run, a minute later, completes an interrupted one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Self

from botocore.exceptions import ClientError

from batch.jobs.door_spending import DoorSpending
from batch.jobs.executions import Executions
from batch.jobs.job_table import Job, JobTable
from batch.jobs.record_table import StateConflictError
from batch.jobs.spending import SpendingTable, month_of
from batch.objects import Objects
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.allotment import WaitingOrRunning, allot
from batch.scheduling.ceilings import Ceilings
from batch.scheduling.forecast import ForecastJob, expected_ends
from batch.scheduling.measuring import SpeedTable
from batch.scheduling.reconciling import OpenJob
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import MAX_RESIZES_PER_RUN
from inference_contracts.batch_names import SHARD_MAP_LABEL

# Jobs that want places, in the forms in which they are allotted and predicted.


@dataclass(frozen=True, slots=True)
class SchedulingCandidate:
    """A job that needs places."""

    job: Job
    admission: Admission
    shards: int
    """Unfinished shards."""

    def with_admission(self, admission: Admission) -> Self:
        return replace(self, admission=admission)

    def wanted(self, speed: float) -> WaitingOrRunning:
        """Return the job as `allot` takes it.

        speed: Speed of its model. It counts until the job itself is measured.
        """
        job, admission = self.job, self.admission
        measured = admission.measured
        return WaitingOrRunning(
            job=job.id,
            team=job.team,
            priority=job.priority,
            submitted=job.created_at,
            deadline=job.expires_at,
            shards=self.shards,
            seconds_per_shard=1 / measured.shards_per_second
            if measured
            else admission.seconds_per_shard / speed,
            is_running=admission.places is not None,
        )

    def forecast(self, speed: float, places: int) -> ForecastJob:
        """Return the job as `expected_ends` takes it.

        speed, places: Speed and places of its model.
        """
        measured = self.admission.measured
        return ForecastJob(
            self.wanted(speed),
            self.admission.seconds_per_shard / max(places, 1),
            measured.shards_per_second if measured else None,
        )


#: A job that was measured slower than planned by more than this factor has waited for workers. How many it
#: needs does not follow from such a time.
_SLOWER_AT_MOST: Final = 4.0


def needed_places(
    candidates: Iterable[SchedulingCandidate], maximum: Mapping[str, int], *, now: float
) -> int:
    """Return the places of a model with which all of its jobs end by their deadlines, whoever has them now.

    maximum: Maximum number of places by team.
    """
    needed: dict[str, int] = defaultdict(int)
    for each in candidates:
        wanted, planned = each.wanted(1.0), each.admission.seconds_per_shard
        seconds = min(wanted.seconds_per_shard, _SLOWER_AT_MOST * planned)
        needed[wanted.team] += replace(wanted, seconds_per_shard=seconds).places_needed(now)
    return sum(min(number, maximum.get(team, number)) for team, number in needed.items())


# Judges whether a new job can meet its deadline beside all jobs that are already there.

#: New jobs that one run judges. The next run judges the others, and no job gets places before.
_JUDGED_AT_ONCE: Final = 20
#: An expected end is stored again if it has moved by so much.
_MOVED_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Judgement:
    """The jobs of one model after a judgement."""

    accepted: list[SchedulingCandidate] = field(default_factory=list)
    """Jobs that may run, with their expected end."""
    refused: list[SchedulingCandidate] = field(default_factory=list)
    """New jobs that cannot meet their deadline, with the reason."""
    changed: set[str] = field(default_factory=set)
    """Identifiers of the jobs whose admission must be stored."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """What a prediction needs to know of a model."""

    places: int
    """Shards that its workers run at the same time."""
    speed: float
    """Measured speed (`batch.scheduling.measuring`)."""
    maximum: Mapping[str, int]
    """Maximum number of places by team."""

    def ends(self, candidates: Sequence[SchedulingCandidate], now: float) -> dict[str, float]:
        """Return the expected end of each job."""
        jobs = [each.forecast(self.speed, self.places) for each in candidates]
        return expected_ends(jobs, self.places, speed=self.speed, now=now, maximum=self.maximum)


def judge(candidates: Sequence[SchedulingCandidate], model: ModelState, *, now: float) -> Judgement:
    """Judge the new jobs of a model in the order of their submission, and update all expected ends.

    A job is judged once. It is refused if it is expected to end after its deadline, unless its team accepts
    that. Jobs that were accepted before are never refused.

    candidates: Jobs of the model that run, or wait for places and are within their team's budget.
    """
    accepted = [each for each in candidates if not _is_new(each)]
    new = sorted(filter(_is_new, candidates), key=lambda each: (each.job.created_at, each.job.id))
    refused = []
    for each in new[:_JUDGED_AT_ONCE]:
        if _may_refuse(each):
            end = model.ends([*accepted, each], now)[each.job.id]
            if end > each.job.expires_at:
                reason = _reason(each.job, end, len(accepted))
                refused.append(each.with_admission(replace(each.admission, refusal=reason)))
                continue
        accepted.append(each)
    result = Judgement(refused=refused, changed={each.job.id for each in refused})
    ends = model.ends(accepted, now)
    for each in accepted:
        before, end = each.admission.expected_at, round(ends[each.job.id])
        if before is None or abs(before - end) >= _MOVED_SECONDS:
            result.changed.add(each.job.id)
            result.accepted.append(each.with_admission(replace(each.admission, expected_at=end)))
        else:
            result.accepted.append(each)
    return result


def _is_new(candidate: SchedulingCandidate) -> bool:
    return candidate.admission.places is None and candidate.admission.expected_at is None


def _may_refuse(candidate: SchedulingCandidate) -> bool:
    job = candidate.job
    return candidate.admission.may_refuse and job.state == "validating" and not job.accept_late


def _reason(job: Job, end: float, others: int) -> str:
    jobs = {0: "no other job", 1: "1 other job"}.get(others, f"{others:,} other jobs")
    return (
        f"beside {jobs} of the model, it is expected to end at {_moment(end)}, after its deadline "
        f"{_moment(job.expires_at)}: set a later deadline or a higher priority, use a queue with more "
        "capacity, or submit it with accept_late (acceptLate in a manifest) to get the answers that are "
        "ready by then"
    )


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M UTC}"


# The execution has already continued or ended.
_NOBODY_WAITS: Final = {"TaskTimedOut", "TaskDoesNotExist"}


class Scheduler:
    def __init__(
        self,
        *,
        configuration: Configuration,
        jobs: JobTable,
        admissions: AdmissionTable,
        speeds: SpeedTable,
        ceilings: Ceilings,
        spending: SpendingTable,
        door: DoorSpending | None = None,
        objects: Objects,
        executions: Executions,
        step_functions: Any,
        queue_urls: Mapping[str, str],
    ) -> None:
        self._configuration = configuration
        self._jobs = jobs
        self._admissions = admissions
        self._speeds = speeds
        self._ceilings = ceilings
        self._spending = spending
        self._door = door
        self._objects = objects
        self._executions = executions
        self._step_functions = step_functions
        self._queue_urls = queue_urls

    def run(self, open_jobs: Sequence[OpenJob], *, now: float, resizes: int = MAX_RESIZES_PER_RUN) -> None:
        """Allot the places of every model to the jobs that are not past their deadline.

        open_jobs: All jobs that have not ended.
        resizes: Running jobs whose places may change. Others keep theirs until the next run.
        """
        by_model: dict[str, list[SchedulingCandidate]] = defaultdict(list)
        self._answer_refused(open_jobs)
        candidates = list(self._candidates(open_jobs, now))
        for candidate in self._within_budgets(candidates, self._spent(open_jobs, now), now):
            by_model[candidate.job.model].append(candidate)
        needed = dict.fromkeys(self._ceilings.models, 0)
        for model, candidates in by_model.items():
            places, speed = self._configuration.places(model), self._speeds.of(model)
            maximum = {team.name: team.max_places(places) for team in self._configuration.teams}
            judged = judge(candidates, ModelState(places, speed, maximum), now=now)
            for candidate in (*judged.accepted, *judged.refused):
                if candidate.job.id in judged.changed:
                    self._admissions.put(candidate.admission, now=int(now))
            for candidate in judged.refused:
                self._answer(candidate.admission, 0, "")
            # Deadlines are judged by all places: how many interactive requests leave changes with the hour.
            left = self._ceilings.of(model, places, now=now)
            allotted = allot([each.wanted(speed) for each in judged.accepted], left, now=now, maximum=maximum)
            for candidate in judged.accepted:
                places, before = allotted.get(candidate.job.id, 0), candidate.admission.places
                if places in {0, before} or (before is not None and resizes == 0):
                    continue
                resizes -= before is not None
                self._give(candidate, places, now=now)
            needed[model] = needed_places(judged.accepted, maximum, now=now)
        for model in sorted(self._ceilings.models):
            self._ceilings.tell_needed(model, needed[model], now=now)

    def _within_budgets(
        self, candidates: Iterable[SchedulingCandidate], spent: dict[str, float], now: float
    ) -> Iterator[SchedulingCandidate]:
        """Iterate over candidates within their teams' budgets. Running jobs are counted first."""
        for candidate in sorted(
            candidates, key=lambda each: (each.admission.places is None, each.wanted(1.0).rank(now))
        ):
            if self._is_within_budget(candidate, spent):
                yield candidate

    def _spent(self, open_jobs: Iterable[OpenJob], now: float) -> dict[str, float]:
        """Return the spending of each team this month, including estimates for jobs that are about to end.

        With a front door, it has charged all that was answered.
        """
        if self._door is not None:
            return {team.name: self._door.usd(team.name, now) for team in self._configuration.teams}
        month = month_of(now)
        spent = {team.name: self._spending.usd(team.name, month) for team in self._configuration.teams}
        for each in open_jobs:
            is_ending = each.job.state in ("finalizing", "cancelling") and each.has_places
            if is_ending and each.admission is not None and each.job.team in spent:
                spent[each.job.team] += each.admission.usd
        return spent

    def _candidates(self, open_jobs: Iterable[OpenJob], now: float) -> Iterator[SchedulingCandidate]:
        """Iterate over waiting and running jobs. `Reconciler` stops jobs that are past their deadline."""
        for each in open_jobs:
            is_candidate = each.job.state in ("validating", "in_progress") and each.job.expires_at > now
            if is_candidate and each.admission is not None and not each.is_refused:
                yield SchedulingCandidate(each.job, each.admission, self._shards_left(each.admission))

    def _shards_left(self, admission: Admission) -> int:
        """Return the unfinished shards of an attempt; at least one until the map has ended."""
        if admission.places is None:
            return admission.shards
        keys = JobKeys(admission.job)
        done = turns_done(self._objects.sizes(keys.parts))
        return max(admission.shards - (done - admission.shards_before), 1)

    def _is_within_budget(self, candidate: SchedulingCandidate, spent: dict[str, float]) -> bool:
        """Return whether the team's budget allows the job.

        If so, its estimate counts as spent from then on: at the front door, that of the shards that are left.
        """
        name, usd = candidate.job.team, candidate.admission.usd
        if self._door is not None:
            usd *= candidate.shards / max(candidate.admission.shards, 1)
        team = self._configuration.team(name)
        if candidate.admission.places is None and (
            team is None or spent[name] + usd > team.monthly_budget_usd
        ):
            return False
        spent[name] = spent.get(name, 0.0) + usd
        return True

    def _give(self, candidate: SchedulingCandidate, places: int, *, now: float) -> None:
        if candidate.admission.places is None:
            self._admit(candidate, places, now=now)
        else:
            self._resize(candidate.job, places)
        self._admissions.put(candidate.admission.with_places(places), now=int(now))

    def _admit(self, candidate: SchedulingCandidate, places: int, *, now: float) -> None:
        """Admit a job."""
        job = candidate.job
        if job.state == "validating":
            try:
                self._jobs.move(
                    job.id, "in_progress", before=["validating"], now=int(now), attempt=job.attempt
                )
            except StateConflictError:
                return  # The job was cancelled at this moment.
        self._answer(candidate.admission, places, self._queue_urls[job.model])

    def _answer_refused(self, open_jobs: Iterable[OpenJob]) -> None:
        """Answer the executions of refused jobs again, in case that an earlier run broke off."""
        for each in open_jobs:
            if each.is_refused and each.admission is not None:
                self._answer(each.admission, 0, "")

    def _answer(self, admission: Admission, places: int, queue_url: str) -> None:
        """Let the execution of a job continue. Without places, it ends the job."""
        try:
            self._step_functions.send_task_success(
                taskToken=admission.task_token, output=json.dumps({"places": places, "queueUrl": queue_url})
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in _NOBODY_WAITS:
                raise

    def _resize(self, job: Job, places: int) -> None:
        """Change the number of a job's shards that run at the same time."""
        runs = self._step_functions.list_map_runs(executionArn=self._executions.arn(job))["mapRuns"]
        for run in runs:
            if f"/{SHARD_MAP_LABEL}:" in run["mapRunArn"] and "stopDate" not in run:
                self._step_functions.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=places)


def turns_done(parts: Iterable[str]) -> int:
    """Return the number of finished turns of shards.

    parts: Keys of all parts of a job.
    """
    return sum(key.endswith("/done.json") for key in parts)
