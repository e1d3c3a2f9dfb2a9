"""Measures how fast running jobs are answered, from the progress that their workers report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from batch.jobs.job_progress import ProgressTable
from batch.jobs.record_table import Table
from batch.scheduling.admissions import Admission, AdmissionTable, Measured
from batch.scheduling.reconciling import OpenJob
from inference_contracts.batch_limits import SHARDS_PER_WORKER
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE

# How fast a model really answers, compared with its planned capacity.
#
# The speed of a model is 1 if all of its jobs together progress as planned, and 0.5 if they take twice as
# long. It is measured from the lines that running jobs have answered, and kept per model.

#: Seconds after which a measured value has made up for half of the difference from the earlier one.
_HALF_LIFE_SECONDS: Final = 900.0
#: Lowest speed, so that a model that answers nothing for a day still gives finite times.
MIN_SPEED: Final = 0.001
#: A speed that nothing has confirmed for this long is forgotten.
_KEPT_SECONDS: Final = 7 * 24 * 3600


def followed_by(before: float, measured: float, seconds: float) -> float:
    """Return the mean of a value and a later measurement, in which the past counts ever less.

    seconds: Length of the measurement.
    """
    weight = 1.0 - math.pow(0.5, seconds / _HALF_LIFE_SECONDS)
    return before + weight * (measured - before)


class SpeedTable:
    """Speeds of models, in the table of all records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of(self, model: str) -> float:
        """Return the speed of a model; 1 if it is unknown."""
        values = self._table.get(_identifier(model))
        return 1.0 if values is None else float(values["speed"])

    def put(self, model: str, speed: float, *, now: float) -> None:
        self._table.put(
            {
                ID_ATTRIBUTE: _identifier(model),
                "record": {"speed": speed},
                EXPIRY_ATTRIBUTE: int(now) + _KEPT_SECONDS,
            }
        )


def _identifier(model: str) -> str:
    return f"speed#{model}"


#: Least time between two measurements of a job. Workers report twice a minute, and reading the progress of a
#: very large job takes a tenth of a second.
MIN_INTERVAL_SECONDS: Final = 240.0


@dataclass(frozen=True, slots=True)
class _Running:
    """A job that is due to be measured."""

    open_job: OpenJob
    admission: Admission
    answered: int
    """Lines that have ended, over all attempts."""
    seconds: float
    """Time since the last measurement; 0 for the first."""
    held: int
    """Places that the job used in that time."""
    shards: float
    """Shards' worth of lines that were answered in that time."""


class SpeedMeter:
    """Updates the speed of running jobs and of their models.

    places: Returns the places of a model.
    """

    def __init__(
        self,
        *,
        progress: ProgressTable,
        admissions: AdmissionTable,
        speeds: SpeedTable,
        places: Callable[[str], int],
    ) -> None:
        self._progress = progress
        self._admissions = admissions
        self._speeds = speeds
        self._places = places

    def run(self, open_jobs: Iterable[OpenJob], *, now: float) -> Sequence[OpenJob]:
        """Measure the jobs that are due, and return all open jobs with their current speed."""
        found = {each.job.id: each for each in open_jobs}
        by_model: dict[str, list[_Running]] = defaultdict(list)
        for each in found.values():
            running = self._running(each, now)
            if running is not None:
                by_model[each.job.model].append(running)
        for model, jobs in by_model.items():
            speed = self._measure_model(model, jobs, now)
            for running in jobs:
                measured = self._measure_job(running, speed, sum(each.held for each in jobs), now)
                found[measured.job.id] = measured
        return list(found.values())

    def _running(self, each: OpenJob, now: float) -> _Running | None:
        """Return a job with its progress; None if it is not due."""
        admission = each.admission
        # A job that asked for places before an upgrade has no lines per shard.
        if admission is None or not admission.lines_per_shard or each.job.state != "in_progress":
            return None
        if admission.places is None:
            return None
        before = admission.measured
        if before is None:
            return _Running(each, admission, self._answered(each), 0.0, admission.places, 0.0)
        if now - before.at < MIN_INTERVAL_SECONDS:
            return None
        answered = self._answered(each)
        left = admission.shards - (before.answered - before.answered_before) / admission.lines_per_shard
        held = max(1, min(admission.places, math.ceil(left)))
        shards = max(answered - before.answered, 0) / admission.lines_per_shard
        return _Running(each, admission, answered, now - before.at, held, shards)

    def _measure_model(self, model: str, jobs: Sequence[_Running], now: float) -> float:
        """Return the speed of a model, after a measurement of its jobs if there is one.

        A worker sends as many requests for one shard as for all that it can hold. So the speed is known if so
        many places are used that each worker can have a shard. Otherwise the model is at least as fast as
        measured.
        """
        speed = self._speeds.of(model)
        places = max(self._places(model), 1)
        again = [each for each in jobs if each.seconds]
        if not again:
            return speed
        work = sum(each.shards * each.admission.seconds_per_shard / each.seconds for each in again)
        found = work / places
        if sum(each.held for each in again) * SHARDS_PER_WORKER < places:
            found = max(found, speed)
        seconds = max(each.seconds for each in again)
        speed = max(followed_by(speed, found, seconds), MIN_SPEED)
        self._speeds.put(model, speed, now=now)
        return speed

    def _measure_job(self, running: _Running, speed: float, used: int, now: float) -> OpenJob:
        """Store the measurement of a job, and return the job with it."""
        admission, before = running.admission, running.admission.measured
        planned = 1 / max(admission.seconds_per_shard, 1.0)
        if before is None:
            # All used places share the model.
            rate = planned * speed * max(self._places(running.open_job.job.model) / max(used, 1), 1.0)
            measured = Measured(running.answered, running.answered, now, rate)
        else:
            rate = followed_by(
                before.shards_per_second, running.shards / running.held / running.seconds, running.seconds
            )
            rate = max(rate, planned * MIN_SPEED)
            measured = replace(before, answered=running.answered, at=now, shards_per_second=rate)
        admission = replace(admission, measured=measured)
        self._admissions.put(admission, now=int(now))
        return OpenJob(running.open_job.job, admission)

    def _answered(self, each: OpenJob) -> int:
        """Return the lines of a job that have ended, over all its attempts."""
        counts = self._progress.of(each.job).counts
        return counts.completed + counts.failed
