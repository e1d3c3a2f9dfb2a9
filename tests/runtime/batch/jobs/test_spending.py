"""Sums are added with the record that they belong to, both or neither, whoever else writes at that moment."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from batch.jobs.record_table import StateConflictError
from batch.jobs.settings import BatchPlatform
from batch.jobs.spending import Figures, SpendingTable, additions, month_of
from tests.runtime.batch.job_records import NOW, make_job

MONTH = month_of(NOW)
ADDED = Figures(1, 9, 1, 1000, 100, 200, 0.25)


def fail(platform: BatchPlatform, **changes: Any) -> None:
    job = make_job(platform, **changes)
    platform.jobs.move(
        job.id, "failed", before=["in_progress"], now=NOW, additions=additions(job, ADDED, now=NOW)
    )


def test_a_month_begins_at_midnight_of_utc() -> None:
    assert [month_of(1_793_491_199), month_of(1_793_491_200)] == ["2026-10", "2026-11"]


def test_a_record_that_is_elsewhere_adds_nothing(platform_in_process: BatchPlatform) -> None:
    with pytest.raises(StateConflictError) as refused:
        fail(platform_in_process, state="cancelling")
    assert refused.value.found is not None
    assert refused.value.found["state"] == "cancelling"
    assert SpendingTable(platform_in_process.table).of("search", MONTH) == ()


def test_queues_of_a_team_and_teams_are_apart(platform_in_process: BatchPlatform) -> None:
    for team, queue in (("search", "nightly"), ("search", "nightly"), ("search", "bulk"), ("ads", "bulk")):
        fail(platform_in_process, state="in_progress", team=team, queue=queue)
    spending = SpendingTable(platform_in_process.table)
    found = [(each.queue, each.figures) for each in spending.of("search", MONTH)]
    assert found == [("bulk", ADDED), ("nightly", Figures(2, 18, 2, 2000, 200, 400, 0.5))]
    assert spending.usd("ads", MONTH) == 0.25
    assert spending.usd("ads", "2020-01") == 0


@pytest.mark.parametrize("conflicts", [1, 99])
def test_two_that_end_at_the_same_moment_are_tried_again(
    platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    client = platform_in_process.table._table.meta.client
    write, left = client.transact_write_items, [conflicts]

    def conflict_at_first(**request: Any) -> Any:
        if left[0]:
            left[0] -= 1
            reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
            answer: Any = {
                "Error": {"Code": "TransactionCanceledException", "Message": ""},
                "CancellationReasons": reasons,
            }
            raise ClientError(answer, "TransactWriteItems")
        return write(**request)

    monkeypatch.setattr(client, "transact_write_items", conflict_at_first)
    monkeypatch.setattr("batch.jobs.record_table._CONFLICT_SECONDS", 0.0)
    if conflicts == 1:
        fail(platform_in_process, state="in_progress")
    else:
        with pytest.raises(ClientError, match="TransactionCanceledException"):
            fail(platform_in_process, state="in_progress")
    usd = SpendingTable(platform_in_process.table).usd("search", MONTH)
    assert usd == (0.25 if conflicts == 1 else 0)
