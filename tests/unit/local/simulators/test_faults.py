"""With any fault: no request is cut, the pool is never overfull, workers go only if the others have room."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import pytest

from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates
from inference_local.simulators.workers.fleet import StartFault
from inference_local.simulators.workers.owners import AutoscaledRole, Owner, RoleState, Signal
from inference_local.simulators.workers.request_simulation import SimulatedRequests, simulate_requests
from tests.unit.local.simulators.signal_faults import During, late, unreadable, without_series, wrong_by
from tests.unit.serving.autoscaling.roles import DAY, MAXIMUM, WORKER, elastic, in_flight, rates

#: From the rise on, for half an hour.
_DURING = During(1200.0, 3000.0)
_ALWAYS = During(0.0, math.inf)
#: Without the guard, a load that is measured wrong or a minute late may let workers go while the others are
#: full.
_MISLEADING = {"late by a minute", "a third", "a tenth", "a half"}


@dataclass(slots=True)
class _Watched:
    """An owner that notes the reductions after which the remaining workers have too few slots."""

    owner: Owner
    too_few: list[RoleState] = field(default_factory=list)

    def wanted(self, state: RoleState) -> int:
        number = self.owner.wanted(state)
        if number < state.wanted and number * WORKER.slots < in_flight(state):
            self.too_few.append(state)
        return number


@dataclass(frozen=True, slots=True)
class _Case:
    """A fault or a load, and the minimum share of requests within the objective."""

    role: Callable[[], AutoscaledRole]
    min_share: float
    start: StartFault | None = None
    load: RequestRates = field(default_factory=lambda: rates(*DAY))


def _guarded(signal: Signal) -> AutoscaledRole:
    """A role whose guard reads what is in flight, while its load is `signal`."""
    return elastic(signal, guard=in_flight)


def _flapping(seconds: float) -> RequestRates:
    """Two hours of a load that is low and high in turns."""
    number = round(7200.0 / seconds)
    return RequestRates(tuple(RateWindow(seconds * each, (2.0, 9.0)[each % 2]) for each in range(number)))


_CASES = {
    "none": _Case(elastic, 0.95),
    "late by a minute": _Case(lambda: elastic(late(in_flight, 60.0)), 0.85),
    "unreadable": _Case(lambda: elastic(unreadable(in_flight, _DURING)), 0.6),
    "the scraper is gone": _Case(lambda: elastic(without_series(in_flight, _DURING)), 0.6),
    "three times too high": _Case(lambda: elastic(wrong_by(in_flight, 3.0, _DURING)), 0.95),
    "a third": _Case(lambda: elastic(wrong_by(in_flight, 1 / 3, _DURING)), 0.75),
    "a tenth": _Case(lambda: elastic(wrong_by(in_flight, 0.1, _ALWAYS)), 0.1),
    "a half": _Case(lambda: elastic(wrong_by(in_flight, 0.5, _ALWAYS)), 0.1),
    **{
        f"guard, load times {factor:g}": _Case(
            partial(_guarded, wrong_by(in_flight, factor, _ALWAYS)), minimum
        )
        for factor, minimum in ((0.1, 0.7), (0.5, 0.7), (2.0, 0.95), (10.0, 0.95))
    },
    "guard, load missing": _Case(lambda: _guarded(without_series(in_flight, _ALWAYS)), 0.7),
    "guard, load unreadable": _Case(lambda: _guarded(unreadable(in_flight, _ALWAYS)), 0.7),
    "guard, load late by a minute": _Case(lambda: _guarded(late(in_flight, 60.0)), 0.85),
    "KEDA is gone": _Case(lambda: elastic(keda_answers=lambda now: now not in _DURING), 0.6),
    "workers never become ready": _Case(elastic, 0.45, "never ready"),
    "no capacity": _Case(elastic, 0.6, "no capacity"),
    "the load flaps every minute": _Case(partial(_guarded, in_flight), 0.9, load=_flapping(60.0)),
    "the load flaps every five minutes": _Case(partial(_guarded, in_flight), 0.8, load=_flapping(300.0)),
}


@cache
def _simulated(name: str) -> tuple[SimulatedRequests, tuple[RoleState, ...]]:
    case = _CASES[name]
    owner = _Watched(case.role())
    found = simulate_requests(
        case.load,
        WORKER,
        owner,
        maximum=MAXIMUM,
        seed=1,
        fault=lambda now: case.start if now in _DURING else None,
    )
    return found, tuple(owner.too_few)


@pytest.mark.parametrize("name", _CASES)
def test_no_request_is_cut_or_lost(name: str) -> None:
    found, _ = _simulated(name)
    assert (found.completed, found.ended_with_requests) == (found.requests, 0)


@pytest.mark.parametrize("name", _CASES)
def test_never_above_the_pool(name: str) -> None:
    assert _simulated(name)[0].max_present <= MAXIMUM


@pytest.mark.parametrize("name", sorted(set(_CASES) - _MISLEADING))
def test_never_below_what_is_in_flight(name: str) -> None:
    assert _simulated(name)[1] == ()


@pytest.mark.parametrize("name", sorted(_MISLEADING))
def test_without_the_guard_a_misleading_load_lets_full_workers_go(name: str) -> None:
    assert _simulated(name)[1] != ()


@dataclass(frozen=True, slots=True)
class _ShiftedFloors:
    """KEDA while a capacity shift changes `minReplicaCount`: one owner from each time on.

    Each begins without memory, so no stabilisation window helps the guard.
    """

    owners: tuple[tuple[float, AutoscaledRole], ...]

    def wanted(self, state: RoleState) -> int:
        return [owner for begin, owner in self.owners if begin <= state.now_seconds][-1].wanted(state)


@pytest.mark.parametrize("factor", [0.1, 0.5])
def test_the_guard_holds_while_floors_shift(factor: float) -> None:
    """Floors go up before the load and down while it is high, and the load reads too small."""
    floors = {0.0: 2, 900.0: 10, 2100.0: 1, 4000.0: 6, 4500.0: 1}
    misleading = wrong_by(in_flight, factor, _ALWAYS)

    def too_few(guard: Signal | None) -> list[RoleState]:
        owners = tuple(
            (begin, elastic(misleading, guard=guard, minimum=minimum)) for begin, minimum in floors.items()
        )
        watched = _Watched(_ShiftedFloors(owners))
        simulate_requests(rates(*DAY), WORKER, watched, maximum=MAXIMUM, seed=1)
        return watched.too_few

    assert too_few(in_flight) == []
    assert too_few(None) != []


def test_the_guard_decides_nothing_while_the_load_is_measured_right() -> None:
    with_guard = simulate_requests(rates(*DAY), WORKER, _guarded(in_flight), maximum=MAXIMUM, seed=1)
    assert with_guard == _simulated("none")[0]


def test_draining_workers_hold_their_place_in_the_pool() -> None:
    """All go and come back while the first still have requests."""

    class _Alternating:
        def wanted(self, state: RoleState) -> int:
            return MAXIMUM if state.wanted < MAXIMUM else 2

    found = simulate_requests(rates(9, 9), WORKER, _Alternating(), maximum=MAXIMUM, seed=1)
    assert (found.max_present, found.ended_with_requests) == (MAXIMUM, 0)


def test_nothing_changes_while_keda_is_gone() -> None:
    wanted: list[int] = []
    role = elastic(keda_answers=lambda now: now not in _DURING)

    class _Noting:
        def wanted(self, state: RoleState) -> int:
            if state.now_seconds in _DURING:
                wanted.append(state.wanted)
            return role.wanted(state)

    simulate_requests(rates(*DAY), WORKER, _Noting(), maximum=MAXIMUM, seed=1)
    assert len(set(wanted)) == 1


@pytest.mark.parametrize("name", _CASES)
def test_objective(name: str) -> None:
    found, _ = _simulated(name)
    assert found.within_objective / found.requests >= _CASES[name].min_share


def test_an_answer_without_a_number_must_be_an_error() -> None:
    """KEDA's default takes it as 0, and workers go while their load is unknown."""

    def share(ignored: Any) -> float:
        role = elastic(without_series(in_flight, _DURING), ignore_null_values=ignored)
        found = simulate_requests(rates(*DAY), WORKER, role, maximum=MAXIMUM, seed=1)
        return found.within_objective / found.requests

    assert share("true") < share("false") - 0.05


def test_the_fallback_helps_when_nothing_can_be_read() -> None:
    """From the start on: without it, the number stays what it was."""

    def share(fallback: dict[str, Any] | None) -> float:
        role = elastic(unreadable(in_flight, During(0.0, 3000.0)), fallback=fallback)
        found = simulate_requests(rates(*DAY), WORKER, role, maximum=MAXIMUM, seed=1)
        return found.within_objective / found.requests

    fallback = {"failureThreshold": 3, "replicas": 10, "behavior": "currentReplicasIfHigher"}
    assert share(fallback) > share(None) + 0.1
