"""Capacity Blocks and the clock: each test has a time of its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.resources import blueprints_directory

STARTS, ENDS = "2026-12-01T11:30:00Z", "2026-12-08T11:30:00Z"


def text() -> str:
    """Return the shipped blueprint with the dates of its block."""
    shipped = (blueprints_directory() / "capacity-block-p5.yaml").read_text(encoding="utf-8")
    plain = "{id: cr-0a1b2c3d4e5f60718}"
    assert plain in shipped
    return shipped.replace(plain, f"{{id: cr-0a1b2c3d4e5f60718, starts: '{STARTS}', ends: '{ENDS}'}}")


def warnings(now: datetime | None) -> list[str]:
    """Return the warnings about dates at a time."""
    found = parse_blueprint(text(), "a.yaml", now=now).warnings
    return [str(each) for each in found if "capacityBlock" in each.path]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (datetime(2026, 12, 1, 11, 29, tzinfo=UTC), "starts: the block of pool 'h100' starts at 2026-12-01"),
        (datetime(2026, 12, 1, 11, 30, tzinfo=UTC), None),
        (datetime(2026, 12, 8, 11, 29, tzinfo=UTC), None),
        (
            datetime(2026, 12, 8, 11, 30, tzinfo=UTC),
            "ends: the block of pool 'h100' ended at 2026-12-08",
        ),
    ],
)
def test_a_block_outside_its_dates_is_a_warning_with_its_line(now: datetime, words: str | None) -> None:
    found = warnings(now)
    assert len(found) == bool(words)
    assert all(each.startswith("a.yaml:15:") and words in each for each in found if words)


def test_without_a_clock_the_file_alone_decides() -> None:
    assert warnings(None) == []


def test_a_blueprint_without_dates_has_nothing_to_compare() -> None:
    then = datetime(2026, 6, 1, tzinfo=UTC)
    assert load_blueprint("capacity-block-p5", now=then) == load_blueprint("capacity-block-p5")
