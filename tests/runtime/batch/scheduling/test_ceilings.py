"""The capacity shift limits the places of a model, and without its word interactive requests go first."""

from __future__ import annotations

import boto3
import pytest

from batch.jobs.record_table import Table
from batch.scheduling.allotment import WaitingOrRunning, allot
from batch.scheduling.ceilings import Ceilings
from inference_contracts.shift_names import CEILING_SECONDS, ceiling_identifier

NOW = 1_800_000_000
MODEL = "qwen3-8b"


@pytest.fixture
def table(aws: dict[str, str]) -> Table:
    return Table(boto3.resource("dynamodb").Table(aws["BATCH_TABLE"]))


def ceilings(table: Table) -> Ceilings:
    return Ceilings(table, frozenset({MODEL}))


def put(table: Table, places: int, at: int = NOW) -> None:
    table.put({"id": ceiling_identifier(MODEL), "record": {"places": places, "at": at}})


@pytest.mark.parametrize(("written", "places"), [(0, 0), (3, 3), (16, 16), (99, 16), (-1, 0)])
def test_a_ceiling_is_within_the_places_of_the_model(table: Table, written: int, places: int) -> None:
    put(table, written)
    assert ceilings(table).of(MODEL, 16, now=NOW + 30) == places


def test_a_model_that_the_shift_does_not_limit_has_all_of_its_places(table: Table) -> None:
    put(table, 3)
    assert Ceilings(table, frozenset()).of(MODEL, 16, now=NOW) == 16


@pytest.mark.parametrize("later", [CEILING_SECONDS + 1, -CEILING_SECONDS - 1])
def test_an_old_ceiling_and_one_of_a_wrong_clock_give_nothing(table: Table, later: int) -> None:
    put(table, 3)
    assert ceilings(table).of(MODEL, 16, now=NOW + later) == 0


def test_without_a_ceiling_nothing_is_given(table: Table) -> None:
    assert ceilings(table).of(MODEL, 16, now=NOW) == 0


def test_without_places_running_jobs_shrink_to_one_and_waiting_jobs_wait() -> None:
    def job(name: str, *, is_running: bool) -> WaitingOrRunning:
        return WaitingOrRunning(name, "search", 10, NOW, NOW + 3600, 8, 600.0, is_running)

    allotted = allot([job("running", is_running=True), job("waiting", is_running=False)], 0, now=NOW)
    assert allotted == {"running": 1, "waiting": 0}
