"""The pages on the enrichment job name its metrics and the reasons of its dead letters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inference_blueprints.resources import root
from inference_contracts.dead_letters import REASONS
from tests.unit.job_sources import job_metrics, words_of_the_job

PAGE = root() / "docs" / "enrichment-job.md"
RUNBOOK = root() / "docs" / "runbooks" / "stream-dead-letters.md"


def first_column(page: Path, heading: str) -> list[str]:
    """Return the names in the first column of the table with this heading."""
    _, _, after = page.read_text(encoding="utf-8").partition(f"| {heading} |")
    assert after, f"{page.name} has no table {heading}"
    rows = after.split("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_the_page_lists_each_metric_of_the_job_once() -> None:
    assert sorted(first_column(PAGE, "Metric")) == sorted(job_metrics())


@pytest.mark.parametrize("page", [PAGE, RUNBOOK], ids=lambda page: page.stem)
def test_the_pages_list_each_reason_of_dead_letters_once(page: Path) -> None:
    assert sorted(first_column(page, "Reason")) == sorted(REASONS)


def test_the_job_writes_each_reason() -> None:
    assert REASONS.keys() <= words_of_the_job()
