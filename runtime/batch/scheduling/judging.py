"""Judges whether a new job can meet its deadline beside all jobs that are already there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from batch.jobs.job_record import Job
from batch.scheduling.forecast import expected_ends
from batch.scheduling.scheduling_candidates import SchedulingCandidate

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
    """Measured speed (`batch.scheduling.speed`)."""
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
