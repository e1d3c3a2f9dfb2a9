"""Nodes of a simulated fleet, which answer the acts of a repair in process."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy

from inference_catalog.gpu_faults import FleetFaults
from inference_contracts.units import SECONDS_PER_DAY
from inference_decisions.repairs.live_node import DcgmReading, LiveNode, Verification
from inference_decisions.repairs.repair_case import RepairCase
from inference_decisions.repairs.worker_windows import Codes, Flags, Labels, Numbers, WorkerWindows
from inference_local.simulators.fleet.fleet_events import (
    FleetEvents,
    GreyFailure,
    RevisionRollout,
    SharedEvent,
)
from inference_local.simulators.fleet.fleet_layout import NODE_GPUS, FleetLayout

# What the workers of a simulated fleet report, minute by minute, drawn as vectors.

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


#: How long the deletion of a NodeClaim takes once its node is empty, in seconds.
_TERMINATION_SECONDS = 30.0


@dataclass(slots=True)
class _Absence:
    """A node that is on its way out, or not yet back."""

    drained_at: float
    gone_at: float = float("inf")
    serves_at: float = float("inf")
    booted_at: float = float("inf")
    """When it is back from a reboot. Infinite if it is not rebooted."""


@dataclass(slots=True)
class SimulatedNodes:
    """The nodes. It has the methods of `RepairActions`."""

    layout: FleetLayout
    metrics: FleetMetrics
    """Its workers, which fall silent and come back with the nodes."""
    figures: FleetFaults
    """How long the steps of a replacement take."""
    random: numpy.random.Generator
    """Source of chance."""
    reboot_seconds: float = 0.0
    """How long a reboot takes. Nobody publishes it for instances with GPUs."""
    now: float = 0.0
    """Time, in seconds since the start. The simulation sets it."""
    slower: Numbers = field(default_factory=lambda: numpy.zeros(0))
    peers: Labels = field(default_factory=lambda: numpy.zeros(0))
    missing_gpus: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    rebooted: dict[int, int] = field(default_factory=dict)
    """How often each node was rebooted."""
    notes: list[str] = field(default_factory=list)
    _generation: dict[int, int] = field(default_factory=dict)
    _absent: dict[int, _Absence] = field(default_factory=dict)
    _cordoned: set[int] = field(default_factory=set)
    _held: dict[str, set[str]] = field(default_factory=dict)

    def name(self, node: int) -> str:
        """Return the name of the machine that is now in a node's place."""
        return f"node-{node}-{self._generation.get(node, 0)}"

    def settle(self, now: float) -> list[int]:
        """Let time pass, and return the nodes whose replacement serves since then."""
        self.now = now
        back = [node for node, absence in self._absent.items() if absence.serves_at <= now]
        for node in back:
            absence = self._absent.pop(node)
            self._generation[node] = self._generation.get(node, 0) + (absence.gone_at < float("inf"))
            self.metrics.restart(node, absence.serves_at)
            self._cordoned.discard(node)
            self.missing_gpus.discard(node)
            self.broken.discard(node)
        return back

    def read_live(self, node: str) -> LiveNode | None:
        """Return a node as it is now."""
        number, generation = self._parsed(node)
        absence = self._absent.get(number)
        if generation != self._generation.get(number, 0) or (absence and absence.gone_at <= self.now):
            return None
        workers = self.layout.workers_of(number)
        pods = 0 if absence and absence.drained_at <= self.now else len(workers)
        gpus = NODE_GPUS - (number in self.missing_gpus)
        figures = self.slower[workers] if len(self.slower) else numpy.zeros(0)
        known = figures[numpy.isfinite(figures)]
        boots = absence is not None and absence.booted_at < float("inf")
        away = absence is not None and boots and self.now < absence.booted_at
        booted = absence.booted_at if absence is not None and boots and not away else -86400.0
        return LiveNode(
            name=node,
            uid=node,
            pool=str(self.layout.pool[number]),
            rack=str(self.layout.rack[number]),
            read_at=self.now,
            booted_at=booted,
            boot=f"{booted:g}",
            ready=None if away else True,
            cordoned=number in self._cordoned,
            cordoned_by_us=number in self._cordoned,
            owner="node_claim",
            owner_name=f"claim-{node}",
            instance=f"i-{number}",
            purchase="on_demand",
            spare=True,
            gpus_expected=NODE_GPUS,
            gpus_allocatable=gpus,
            dcgm=DcgmReading(at=self.now, gpus=gpus),
            slower=float(max(known)) if len(known) else None,
            peers=frozenset(map(str, self.peers[workers])) if len(self.peers) else frozenset(),
            serving_pods=pods,
        )

    def reserve(self, case: RepairCase, places: int) -> bool:
        """Take a place of the pool."""
        held = self._held.setdefault(case.pool, set())
        if case.node not in held and len(held) >= places:
            return False
        held.add(case.node)
        return True

    def release(self, case: RepairCase) -> None:
        """Give a place of the pool back."""
        self._held.get(case.pool, set()).discard(case.node)

    def cordon(self, case: RepairCase) -> None:
        """Close a node."""
        self._cordoned.add(self._parsed(case.node)[0])

    def uncordon(self, case: RepairCase) -> None:
        """Open a node; pods that were moved away come back."""
        number, _ = self._parsed(case.node)
        self._cordoned.discard(number)
        absence = self._absent.get(number)
        if absence is not None and absence.booted_at <= self.now:
            absence.serves_at = self.now + self._drawn("start_seconds")
        elif self._absent.pop(number, None) is not None:
            self.metrics.restart(number, self.now)

    def drain(self, case: RepairCase) -> None:
        """Start to move pods away."""
        number, _ = self._parsed(case.node)
        if number not in self._absent:
            self._absent[number] = _Absence(self.now + self._drawn("drain_seconds"))
            self.metrics.stop(number, self._absent[number].drained_at)

    def reboot(self, case: RepairCase, live: LiveNode) -> None:  # noqa: ARG002 - as of RepairActions
        """Boot a node again. What was broken is mended: only such faults are rebooted for."""
        number, _ = self._parsed(case.node)
        absence = self._absent.setdefault(number, _Absence(self.now))
        absence.booted_at = self.now + self.reboot_seconds
        self.rebooted[number] = self.rebooted.get(number, 0) + 1

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Ask for another node, if it is still the same."""
        if live.uid != case.node_uid:
            return
        absence = self._absent.setdefault(self._parsed(case.node)[0], _Absence(self.now))
        if absence.gone_at == float("inf"):
            absence.gone_at = self.now + _TERMINATION_SECONDS
            # Karpenter launches the replacement as soon as the pods are pending, which is at the drain.
            ready = max(absence.gone_at, absence.drained_at + self._drawn("launch_seconds"))
            absence.serves_at = ready + self._drawn("start_seconds")

    def verify(self, case: RepairCase) -> Verification:
        """Return whether a replacement serves."""
        number, generation = self._parsed(case.node)
        back = self._generation.get(number, 0) > generation
        return Verification(back, self.name(number) if back else "")

    def notify(self, case: RepairCase, text: str) -> None:
        """Note what people are told."""
        self.notes.append(f"{case.node}: {text}")

    def _drawn(self, name: str) -> float:
        """Return a duration: lognormal around its mean, with a spread of 30 %."""
        spread = 0.3
        return self.figures.repair[name] * float(
            numpy.exp(self.random.normal(0, spread) - spread * spread / 2)
        )

    @staticmethod
    def _parsed(name: str) -> tuple[int, int]:
        _, number, generation = name.split("-")
        return int(number), int(generation)
