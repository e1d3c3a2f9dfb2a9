"""What the workers of a simulated fleet report, minute by minute, drawn as vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

from inference_catalog.gpu_faults import FleetFaults
from inference_contracts.units import SECONDS_PER_DAY
from inference_decisions.repairs.worker_windows import Codes, Flags, Numbers, WorkerWindows
from inference_local.simulators.fleet.fleet_events import (
    FleetEvents,
    GreyFailure,
    RevisionRollout,
    SharedEvent,
)
from inference_local.simulators.fleet.fleet_layout import FleetLayout

_MINUTE = 60.0
#: Logarithms of the requests per minute of a busy worker: those of the workers in docs/benchmarks.md, where
#: Qwen3-32B on 16 H200 serves 13.9 to 61.5 requests/s, and of smaller models.
_REQUESTS = (math.log(50), math.log(500))
#: Revisions of a release have numbers of their own within this many.
_REVISIONS = 1000
#: Share of requests that fail on healthy workers.
_USUAL_FAILURES = 0.002
#: Latency grows with the square of the load, by this share at the usual peak.
_LOAD_LATENCY = 0.5


@dataclass(frozen=True, slots=True)
class ReportedMinute:
    """What arrived of one minute."""

    at_once: WorkerWindows
    """The window as it is read at the end of the minute."""
    later: WorkerWindows
    """The same window a minute later, when late metrics have arrived."""


class FleetMetrics:
    """The workers' true state, and what their metrics show of it.

    events: What happens to it.
    figures: Noise.
    random: Source of chance.
    """

    def __init__(
        self,
        layout: FleetLayout,
        events: FleetEvents,
        figures: FleetFaults,
        random: numpy.random.Generator,
    ) -> None:
        self._layout, self._events, self._noise, self._random = layout, events, figures.noise, random
        count, releases = layout.workers, layout.releases
        self._units: dict[str, Codes] = {
            "node": layout.node,
            "rack": layout.rack[layout.node],
            "release": layout.release,
            "pool": layout.pool[layout.node],
            "cell": layout.cell[layout.node],
        }
        self._offset = random.normal(0, self._noise["worker_offset"], count)
        self._drift = random.normal(0, self._noise["drift"], count)
        self._latency = random.uniform(0.01, 0.05, releases)[layout.release]
        self._requests = numpy.exp(random.uniform(*_REQUESTS, releases))[layout.release]
        self._tokens = random.uniform(200, 2000, releases)[layout.release]
        self._phase = random.uniform(0, SECONDS_PER_DAY, releases)[layout.release]
        self._revision = numpy.zeros(count, numpy.int64)
        self._revision_slower = numpy.zeros(count)
        self._started = numpy.full(count, -float(SECONDS_PER_DAY))
        self._down_from = numpy.full(count, numpy.inf)
        self._grey = list[GreyFailure]()
        self._coming = sorted(events.grey, key=lambda failure: failure.at)
        self._restarts = self._planned(events.rollouts)

    @property
    def windows_of_nothing(self) -> WorkerWindows:
        """A window in which no worker reported."""
        nothing = numpy.full((1, self._layout.workers), numpy.nan)
        return self._windows(0.0, nothing, nothing, nothing, nothing)

    def minute(self, number: int) -> ReportedMinute:
        """Return what arrived of a minute. Minutes have to be asked for in order.

        number: Number of the minute since the start.
        """
        start, end = number * _MINUTE, (number + 1) * _MINUTE
        self._arrive(end)
        slower, load, silent = self._overlaps(start, end)
        noise, count = self._noise, self._layout.workers
        memory = noise["drift_memory"]
        self._drift *= memory
        self._drift += self._random.normal(0, noise["drift"] * math.sqrt(1 - memory**2), count)
        daily = 0.65 + 0.35 * numpy.sin(2 * math.pi * (start + self._phase) / SECONDS_PER_DAY)
        load *= daily * numpy.exp(self._random.normal(0, noise["load"], count))
        requests = self._random.poisson(self._requests * load).astype(float)
        sampling = noise["request"] / numpy.sqrt(numpy.maximum(requests, 1.0))
        scatter = self._offset + self._drift + sampling * self._random.normal(0, 1, count)
        latency = (
            self._latency
            * (1 + _LOAD_LATENCY * load**2)
            * slower
            * (1 + self._revision_slower)
            * numpy.exp(scatter)
        )
        failed = self._random.poisson(requests * _USUAL_FAILURES).astype(float)
        tokens = load * self._tokens
        chance = self._random.random(count)
        absent = silent | (self._started > start) | (self._down_from < end)
        lost = absent | (chance < noise["lost"])
        late = (chance >= noise["lost"]) & (chance < noise["lost"] + noise["late"])
        doubled = chance > 1 - noise["doubled"]
        requests = numpy.where(doubled, 2 * requests, requests)
        tokens = numpy.where(doubled, 2 * tokens, tokens)
        later = self._windows(end, *(_without(each, lost) for each in (tokens, latency, requests, failed)))
        at_once = self._windows(
            end, *(_without(each, lost | late) for each in (tokens, latency, requests, failed))
        )
        return ReportedMinute(at_once, later)

    def failures_on(self, node: int, now: float, lately: float) -> list[GreyFailure]:
        """Return what makes workers of a node slow, or did until lately.

        now: Seconds since the start.
        lately: Seconds for which a failure that ended still counts.
        """
        mine = set(self._layout.workers_of(node).tolist())
        return [each for each in self._grey if each.worker in mine and each.until + lately > now]

    def stop(self, node: int, at: float) -> None:
        """Make the workers of a node silent: they crashed, or are moved away."""
        workers = self._layout.workers_of(node)
        self._down_from[workers] = numpy.minimum(self._down_from[workers], at)

    def restart(self, node: int, at: float) -> None:
        """Put healthy hardware in the place of a node: its workers start, and what made them slow is gone."""
        workers = self._layout.workers_of(node)
        self._down_from[workers], self._started[workers] = numpy.inf, at
        self._offset[workers] = self._random.normal(0, self._noise["worker_offset"], len(workers))
        gone = set(workers.tolist())
        self._grey = [each for each in self._grey if each.worker not in gone]

    def _planned(self, rollouts: tuple[RevisionRollout, ...]) -> list[tuple[float, int, int, float]]:
        """Return when which worker starts with which revision, and how much slower that is, in order."""
        restarts = list[tuple[float, int, int, float]]()
        for number, rollout in enumerate(sorted(rollouts, key=lambda each: each.at), start=1):
            workers = numpy.flatnonzero(self._layout.release == rollout.release)
            restarts += [
                (rollout.at + place * rollout.worker_seconds, int(worker), number, rollout.slower)
                for place, worker in enumerate(workers)
            ]
        return sorted(restarts)

    def _arrive(self, end: float) -> None:
        while self._coming and self._coming[0].at < end:
            self._grey.append(self._coming.pop(0))
        while self._restarts and self._restarts[0][0] < end:
            at, worker, revision, slower = self._restarts.pop(0)
            self._revision[worker], self._revision_slower[worker] = revision, slower
            self._started[worker] = at + _MINUTE
        # A failure that ended an hour ago is forgotten.
        self._grey = [each for each in self._grey if each.until > end - 3600]

    def _overlaps(self, start: float, end: float) -> tuple[Numbers, Numbers, Flags]:
        """Return latency and load as multiples of the usual, and who is silent, in a minute."""
        count = self._layout.workers
        slower, load, silent = numpy.ones(count), numpy.ones(count), numpy.zeros(count, numpy.bool_)
        for failure in self._grey:
            slower[failure.worker] *= 1 + failure.slower * _share(failure, start, end)
        for event in self._events.shared:
            share = _share(event, start, end)
            if share:
                hit = numpy.flatnonzero(self._units[event.unit] == event.number)
                # Each worker is hit by its own share of the event, the same in every minute.
                own = 1 + (hit * 0.618034 % 1 - 0.5) * 2 / 3
                slower[hit] *= 1 + event.slower * own * share
                load[hit] *= 1 + (event.load - 1) * share
                silent[hit] |= event.silent
        return slower, load, silent

    def _windows(
        self, end: float, tokens: Numbers, latency: Numbers, requests: Numbers, failed: Numbers
    ) -> WorkerWindows:
        layout, count = self._layout, self._layout.workers
        unknown = numpy.full((1, count), numpy.nan)
        return WorkerWindows(
            worker=numpy.arange(count),
            node=layout.node,
            rack=self._units["rack"],
            pool=self._units["pool"],
            peers=layout.release * _REVISIONS + self._revision % _REVISIONS,
            age=end - self._started,
            load=tokens.reshape(1, count),
            latency=latency.reshape(1, count),
            requests=requests.reshape(1, count),
            failed=failed.reshape(1, count),
            failed_transfers=unknown,
            empty=unknown,
        )


def _without(values: Numbers, missing: Flags) -> Numbers:
    return numpy.where(missing, numpy.nan, values)


def _share(event: GreyFailure | SharedEvent, start: float, end: float) -> float:
    """Return the share of a minute in which an event lasts."""
    return max(0.0, min(event.until, end) - max(event.at, start)) / (end - start)
