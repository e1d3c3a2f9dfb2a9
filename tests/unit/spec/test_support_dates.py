"""What the calendar knows: the end of support of what a platform runs on. Each test has a time of its own."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.spec import support_dates
from inference_catalog.limits import support_ends


def warnings(name: str, now: datetime | None, **edits: str) -> list[str]:
    text = (blueprints_directory() / f"{name}.yaml").read_text(encoding="utf-8")
    for old, put in edits.items():
        assert old in text
        text = text.replace(old, put, 1)
    found = [str(each) for each in parse_blueprint(text, "a.yaml", now=now).warnings]
    return [each for each in found if "support of" in each or "eks.version" in each]


def kubernetes(now: datetime | None, more: str = "") -> list[str]:
    version = '{version: "1.36"' if not more else '{version: "1.34"'
    return warnings("quickstart-g6e", now, **{_version(): version + more.removeprefix("-") + "}"})


def _version() -> str:
    text = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    start = text.index("{version:")
    return text[start : text.index("}", start) + 1]


@pytest.mark.parametrize(
    ("now", "more", "words"),
    [
        ((2026, 9, 1), "-", None),
        (
            (2026, 11, 28),
            "-",
            "standard support of 1.34 ends on 2026-12-02; EKS then updates the cluster itself",
        ),
        (
            (2026, 11, 28),
            ", extendedSupport: true",
            "it costs 0.50 USD more per hour (365 a month) from then on",
        ),
        ((2026, 12, 2), "-", "ended on 2026-12-02; set a newer cluster.eks.version, or extendedSupport"),
        (
            (2027, 6, 1),
            ", extendedSupport: true",
            "which costs 0.50 USD more per hour (365 a month) and ends",
        ),
        ((2027, 12, 2), ", extendedSupport: true", "EKS has not supported 1.34 since 2027-12-02"),
    ],
)
def test_the_end_of_support_is_said_before_it_comes(
    now: tuple[int, int, int], more: str, words: str | None
) -> None:
    """Red if `validate` and `plan` say nothing, and only an account's `doctor` knows the calendar."""
    found = kubernetes(datetime(*now, tzinfo=UTC), more)
    assert len(found) == bool(words)
    assert all(words in each and "1.36 is the newest here" in each for each in found if words)


def test_without_a_clock_the_file_alone_decides() -> None:
    assert kubernetes(None, "-") == []


def test_what_a_section_runs_on_has_a_date_too(monkeypatch: pytest.MonkeyPatch) -> None:
    near = [dataclasses.replace(each, ends="2026-12-20") for each in support_ends() if "MSK" in each.name]
    monkeypatch.setattr(support_dates, "support_ends", lambda: tuple(near))
    now = datetime(2026, 11, 28, tzinfo=UTC)
    [found] = warnings("streaming-g6e", now)
    assert "support of Apache Kafka on Amazon MSK 3.8.x ends on 2026-12-20; MSK upgrades clusters" in found
    assert warnings("quickstart-g6e", now) == []


def test_every_date_is_one() -> None:
    for each in support_ends():
        assert each.source
        assert each.then
        assert each.ends is None or datetime.fromisoformat(each.ends)
