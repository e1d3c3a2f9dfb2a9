"""The capacity shift of a run: the platform's decision over the worker processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy

from inference_contracts.shift_names import ShiftConfiguration
from inference_contracts.units import SECONDS_PER_DAY, SECONDS_PER_MINUTE
from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from inference_decisions.capacity_shift.shift_decision import decide
from inference_decisions.capacity_shift.shift_view import (
    CellView,
    DeploymentView,
    PoolView,
    ShiftSettings,
    ShiftState,
)
from inference_local.serving.platform_parts import PlatformPart

#: Days before the run. Nobody measured them, and they count as without requests: with less than a day of
#: demand, nothing is lent.
_DAYS_BEFORE = 2
_KEY = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RoleNumbers:
    """The present numbers of workers of a role."""

    wanted: int
    ready: int


class LocalShift:
    """Decides once a minute of the run's clock, as the function of the platform does.

    configuration: What the shift moves.
    demand: Returns the requests in flight by release, as the frontends count them.
    needed: Returns the places that deadlines of a model need. None if batch does not say so.
    lend: Takes the places that batch may have now, by model.
    """

    def __init__(
        self,
        configuration: ShiftConfiguration,
        *,
        demand: Callable[[], Mapping[str, float]],
        needed: Callable[[str], int | None],
        lend: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._configuration = configuration
        self._demand, self._needed, self._lend = demand, needed, lend
        self._values: dict[str, list[float]] = {
            each.release: [0.0] * (_DAYS_BEFORE * SECONDS_PER_DAY // BIN_SECONDS)
            for each in configuration.workers
            if not each.batch_only
        }
        self._state: ShiftState | None = None
        self._decided_at: float | None = None
        self._ranges: dict[_KEY, tuple[int, int]] = {}
        self._seen: dict[str, tuple[int, int]] = {}

    def range_of(self, release: str, role: str) -> tuple[int, int] | None:
        """Return the smallest and the largest number of workers. None if the shift does not set them."""
        return self._ranges.get((release, role))

    @property
    def moved(self) -> Mapping[str, tuple[int, int]]:
        """Fewest and most workers that each role was given in the run, by its name."""
        return self._seen

    def step(self, now: float, live: Mapping[_KEY, RoleNumbers]) -> None:
        """Decide if a minute has passed since the last decision.

        now: Seconds on the run's clock.
        live: Present numbers by release and role.
        """
        if self._decided_at is not None and now - self._decided_at < SECONDS_PER_MINUTE:
            return
        bins = 1 if self._decided_at is None else round((now - self._decided_at) / BIN_SECONDS)
        self._decided_at = now
        demand = self._demand()
        for release, values in self._values.items():
            # A busy machine decides late: what was not read counts as what is read now.
            values.extend([demand.get(release, 0.0)] * bins)
        decision = self._decided(now, live)
        self._state = decision.state
        by_name = {each.name: each for each in self._configuration.workers}
        for each in decision.deployments:
            workers = by_name[each.name]
            ceiling = workers.most if each.ceiling is None else each.ceiling
            self._ranges[workers.release, workers.role] = each.floor, ceiling
            low, high = self._seen.get(each.name, (each.floor, each.floor))
            self._seen[each.name] = min(low, each.floor), max(high, each.floor)
        self._lend(decision.ceilings(self._configuration))

    def _decided(self, now: float, live: Mapping[_KEY, RoleNumbers]) -> ShiftDecision:
        needed = {model: self._needed(model) for model in self._configuration.lent_models}
        views = []
        for workers in self._configuration.workers:
            number = live[workers.release, workers.role]
            view = DeploymentView.of(
                workers,
                self._configuration,
                replicas=number.wanted,
                ready=min(number.ready, number.wanted),
                needed_places=needed.get(workers.model),
            )
            views.append(view)
        pools = [PoolView.of(each) for each in self._configuration.shared_pools]
        histories = {
            each.name: DemandHistory(int(now), numpy.array(self._values[each.release]))
            for each in self._configuration.workers
            if not each.batch_only
        }
        settings = ShiftSettings.of(self._configuration)
        return decide(histories, CellView(tuple(views), tuple(pools)), self._state, settings, now)


def local_shift_part(factor: float) -> PlatformPart:
    """Return the row of the table of parts.

    factor: How much faster the run's clock goes.
    """
    return PlatformPart(
        "Capacity shift",
        "stand-in",
        "the platform's decision, called in this process once a minute of a clock that goes "
        f"{factor:g} times faster; it gives worker processes to batch and takes them back, and sets "
        "batch's places. The days before the run are made up to be without requests. The function, its "
        "table and its freeze switch do not run",
    )
