"""The two simulators: by rates and request by request."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pvariance

import pytest

from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates
from inference_contracts.errors import UserError
from inference_local.simulators.workers.fleet import Fleet
from inference_local.simulators.workers.owners import ClairvoyantSchedule, FixedNumber, RoleState
from inference_local.simulators.workers.rate_simulation import arrivals_per_step, simulate_rates
from inference_local.simulators.workers.request_simulation import arrival_times, simulate_requests
from tests.unit.serving.autoscaling.roles import DAY, MAXIMUM, WORKER, elastic, rates


@pytest.mark.parametrize(
    "text",
    [
        "0,2.5\n600,4\n",
        "0,2.5\n\n600,4\n\n",
        "start_s,req/s\n0,2.5\n600,4\n",
        "0,2.5,1,Gamma,0.5,2\n600,4,1\n",
    ],
)
def test_reads_the_format_of_servegen(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(text)
    found = RequestRates.read(path)
    assert [(each.start_seconds, each.rate, each.variation) for each in found.windows] == [
        (0, 2.5, 1),
        (600, 4, 1),
    ]


ALLOWED = "write start_s, req/s, CV as numbers, one window per line; CV may be left out"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "start_s,req/s\n0,1\n600,x\n1200,-1\n1800,nan\n2400\n",
            [
                f"rates.csv:3: got '600,x'; {ALLOWED}",
                "rates.csv:4: got '1200,-1'; allowed are finite numbers, and rate and variation of 0 or more",
                "rates.csv:5: got '1800,nan'; allowed are finite numbers, and rate and variation of 0 or "
                "more",
                f"rates.csv:6: got '2400'; {ALLOWED}",
            ],
        ),
        ("0,x\n600,1\n", [f"rates.csv:1: got '0,x'; {ALLOWED}"]),
        (
            "0,1\n600,1\n1500,2\n2100,2\n2200,2\n",
            [
                "rates.csv: the window at 1500 s starts 900 s after the one before; the first has 600 s, "
                "and all "
                "must have the same length",
                "rates.csv: the window at 2200 s starts 100 s after the one before; the first has 600 s, "
                "and all "
                "must have the same length",
            ],
        ),
        (
            "600,1\n0,1\n",
            ["rates.csv: got a second window that starts -600 s after the first; it must start later"],
        ),
        ("start_s,req/s\n0,1\n", ["rates.csv: got 1 windows; at least 2 are needed"]),
        ("", ["rates.csv: got 0 windows; at least 2 are needed"]),
    ],
)
def test_all_problems_of_a_file_at_once(text: str, problems: list[str], tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        RequestRates.read(path)
    assert str(caught.value).splitlines() == problems


def test_a_file_of_another_kind_has_a_short_answer(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("{}\n" * 1000)
    with pytest.raises(UserError, match="and 979 more"):
        RequestRates.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is no CSV file in UTF-8"):
        RequestRates.read(path)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        RequestRates.read(tmp_path / "none.csv")


def test_rates_change_evenly_between_the_middles_of_windows() -> None:
    found = rates(2, 4, 10)
    assert [found.rate_at(seconds) for seconds in (0, 300, 600, 900, 1200, 1500, 1800)] == [
        2,
        2,
        3,
        4,
        7,
        10,
        10,
    ]
    assert found.max_between(0, 600) == 3
    assert found.max_between(0, 1790) == 10


@pytest.mark.parametrize("variation", [0.5, 1.0, 2.0])
def test_arrivals_have_the_rate_and_the_variation(variation: float) -> None:
    windows = tuple(RateWindow(600.0 * index, 4.0, variation) for index in range(60))
    times = list(arrival_times(RequestRates(windows), seed=1))
    gaps = [after - before for before, after in pairwise(times)]
    assert fmean(gaps) == pytest.approx(0.25, rel=0.03)
    assert pvariance(gaps) ** 0.5 / fmean(gaps) == pytest.approx(variation, rel=0.05)


def test_a_worker_costs_from_the_decision_until_its_last_request_ended() -> None:
    fleet = Fleet(WORKER, MAXIMUM, ready=2)
    fleet.advance(0.0)
    fleet.want(3, 0.0)
    fleet.advance(100.0)
    assert (fleet.ready, fleet.wanted) == (2, 3)
    fleet.advance(120.0)
    assert fleet.want(2, 120.0) == 1
    assert (fleet.ready, fleet.present) == (2, 3)
    fleet.advance(130.0)
    fleet.advance(140.0)
    assert fleet.billed_seconds == 3 * 130 + 2 * 10


def test_workers_that_drain_hold_their_place_in_the_pool() -> None:
    fleet = Fleet(WORKER, 4, ready=4)
    fleet.want(2, 0.0)
    fleet.want(4, 1.0)
    assert (fleet.wanted, fleet.present) == (2, 4)


@pytest.mark.parametrize(("number", "share"), [(4, 1.0), (3, 0.1)])
def test_capacity(number: int, share: float) -> None:
    """Four workers serve 3.6 requests a second for ever, three cannot."""
    flat = rates(*[3.6] * 12)
    found = simulate_rates(flat, arrivals_per_step(flat, 1), WORKER, FixedNumber(number), maximum=MAXIMUM)
    assert found.within_objective == pytest.approx(share, abs=0.15)
    assert found.accelerator_hours == pytest.approx(number * 2, rel=0.02)


def test_workers_that_the_pool_cannot_hold_are_counted() -> None:
    """Eight are wanted for two hours, and there is room for four."""
    flat = rates(*[3.6] * 12)
    found = simulate_rates(flat, arrivals_per_step(flat, 1), WORKER, FixedNumber(8), maximum=4)
    assert found.max_present == 4
    assert found.missing_worker_hours == pytest.approx(8.0)


def test_clairvoyant_workers_are_ready_when_the_rate_comes() -> None:
    schedule = ClairvoyantSchedule(rates(*DAY), WORKER, 0.8, 2, MAXIMUM)
    found = simulate_requests(rates(*DAY), WORKER, schedule, maximum=MAXIMUM, seed=1)
    assert found.within_objective / found.requests > 0.99


@pytest.mark.parametrize("seed", [1, 2])
def test_both_simulators_agree(seed: int) -> None:
    by_rate = simulate_rates(
        rates(*DAY), arrivals_per_step(rates(*DAY), seed), WORKER, elastic(), maximum=MAXIMUM
    )
    by_request = simulate_requests(rates(*DAY), WORKER, elastic(), maximum=MAXIMUM, seed=seed)
    assert by_request.accelerator_hours == pytest.approx(by_rate.accelerator_hours, rel=0.05)
    assert by_request.within_objective / by_request.requests == pytest.approx(
        by_rate.within_objective, abs=0.03
    )


def test_flapping_load_neither_cuts_nor_overfills() -> None:
    chance = random.Random(3)  # noqa: S311 - no secret is made
    flapping = rates(*(chance.choice((1.0, 9.0)) for _ in range(12)))
    found = simulate_requests(flapping, WORKER, elastic(), maximum=MAXIMUM, seed=3)
    assert (found.completed, found.ended_with_requests) == (found.requests, 0)
    assert found.max_present <= MAXIMUM


def test_requests_that_never_find_a_worker_are_not_completed() -> None:
    """A role that is full for ever: what still waits an hour after the end is not counted as answered."""
    found = simulate_requests(rates(9, 9, 9, 9, 9, 9), WORKER, FixedNumber(1), maximum=1, seed=1)
    assert found.completed < found.requests


def test_state_of_a_role_is_what_owners_see() -> None:
    seen: list[RoleState] = []

    class _Looking:
        def wanted(self, state: RoleState) -> int:
            seen.append(state)
            return 4

    simulate_requests(rates(2, 2), WORKER, _Looking(), maximum=MAXIMUM, seed=1)
    assert {state.wanted for state in seen[1:]} == {4}
    assert max(state.ready for state in seen) == 4
    assert all(state.running <= state.ready * WORKER.slots for state in seen)
