"""The table of parts names every piece of batch."""

from __future__ import annotations

from inference_local.batch.local_batch import describe


def test_workers_are_real_and_what_is_around_them_is_not() -> None:
    parts = {part.name: part for part in describe({"qwen3-8b": 2})}
    assert {name: part.state for name, part in parts.items()} == {
        "Batch API": "emulated",
        "Batch jobs": "emulated",
        "Batch workers": "real",
        "Batch worker scaling": "stubbed",
        "Batch worker image": "stubbed",
    }
    assert "2 of qwen3-8b" in parts["Batch workers"].detail


def test_without_workers_nobody_claims_that_they_are_real() -> None:
    assert {part.name: part.state for part in describe({})}["Batch workers"] == "stubbed"
