"""Jobs are listed over pages, watched to their end, and summed up for a month."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.deployment.batch.costs import Cost, costs_since, month_began
from inference_blueprints.deployment.batch.jobs import newest, watch
from inference_blueprints.deployment.batch.results import save
from inference_blueprints.errors import UserError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class FakeApi:
    """Answers with what it was given, one answer after the other."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        self.asked.append((path, dict(query or {})))
        return self.answers.pop(0)


def job(queue: str = "nightly", *, usd: float = 1.0, at: datetime = NOW) -> dict[str, Any]:
    return {
        "team": "search",
        "model": "qwen3-8b",
        "queue": queue,
        "created_at": int(at.timestamp()),
        "request_counts": {"total": 3, "completed": 2, "failed": 1},
        "usage": {"input_tokens": 100, "output_tokens": 10},
        "cost_usd": usd,
    }


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


def test_costs_are_those_of_the_month_the_dearest_first() -> None:
    jobs = [job(usd=1), job("urgent", usd=5), job(usd=2), job(usd=100, at=NOW - timedelta(days=21))]
    assert costs_since(jobs, month_began(NOW)) == [
        Cost("search", "qwen3-8b", "urgent", 1, 2, 100, 10, 5),
        Cost("search", "qwen3-8b", "nightly", 2, 4, 200, 20, 3),
    ]


def test_a_month_is_that_of_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert month_began(datetime(2026, 12, 1, 8, tzinfo=east)) == datetime(2026, 11, 1, tzinfo=UTC)


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
