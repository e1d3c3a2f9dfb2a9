"""Jobs are listed over pages and watched to their end; their costs are those that the API knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_blueprints.operate.batch.jobs import costs_of, newest, save, watch
from inference_contracts.errors import UserError


class FakeApi(BatchApiClient):
    """Answers with what it was given, one answer after the other."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        self.asked.append((path, dict(query or {})))
        return self.answers.pop(0)


def test_a_list_goes_on_where_its_page_ends() -> None:
    pages = [
        {"data": [{"id": "a"}, {"id": "b"}], "has_more": True, "last_id": "b"},
        {"data": [{"id": "c"}], "has_more": False, "last_id": "c"},
    ]
    api = FakeApi(*pages)
    assert [each["id"] for each in newest(api)] == ["a", "b", "c"]
    assert api.asked == [("/batches", {"limit": "100"}), ("/batches", {"limit": "100", "after": "b"})]


def test_no_more_is_asked_for_than_is_wanted() -> None:
    api = FakeApi({"data": [{"id": "a"}, {"id": "b"}], "has_more": True, "last_id": "b"})
    assert [each["id"] for each in newest(api, 2)] == ["a", "b"]
    assert api.asked == [("/batches", {"limit": "2"})]


def test_a_job_is_watched_until_nothing_follows() -> None:
    states = ["validating", "in_progress", "finalizing", "cancelling", "cancelled", "unseen"]
    api = FakeApi(*({"status": state} for state in states))
    shown: list[str] = []
    ended = watch(api, "batch_1", lambda each: shown.append(each["status"]), look_seconds=0)
    assert ended["status"] == "cancelled"
    assert shown == states[:-1]


def test_costs_are_shown_the_dearest_first() -> None:
    rows = [{"model": "m", "queue": queue, "usd": usd} for queue, usd in (("a", 1), ("c", 5), ("b", 5))]
    api = FakeApi({"data": rows}, {"data": []})
    assert [each["queue"] for each in costs_of(api, "2026-11")["data"]] == ["b", "c", "a"]
    costs_of(api, None)
    assert api.asked == [("/costs", {"month": "2026-11"}), ("/costs", {})]


@pytest.mark.parametrize("month", ["2026", "2026-00", "2026-13", "11-2026", "2026-11-01"])
def test_what_is_no_month_is_not_asked_for(month: str) -> None:
    with pytest.raises(UserError, match="such as 2026-11"):
        costs_of(FakeApi(), month)


def test_what_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Any:
        yield b"half"
        raise UserError("broken off")

    with pytest.raises(UserError, match="broken off"):
        save(broken(), tmp_path / "answers.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none/a\.jsonl: cannot be written: No such file"):
        save([b"x"], tmp_path / "none" / "a.jsonl")
