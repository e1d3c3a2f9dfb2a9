"""What `plan` says of a day of batch, and when it refuses it."""

from __future__ import annotations

import json
from pathlib import Path

from inference_blueprints.resources import blueprints_directory
from tests.unit.command_run import Ran, blueprints


def plan(directory: Path, load: str, *arguments: str, workers: int = 2) -> Ran:
    text = (blueprints_directory() / "batch-g6e.yaml").read_text(encoding="utf-8")
    # A request a second each.
    for before, after in (
        ("nodes: {max: 3}", f"nodes: {{max: {workers}}}"),
        ("peakRequestsPerSecond: 2}", f"peakRequestsPerSecond: {workers}}}"),
        ("replicas: 2,", f"replicas: {workers},"),
        ("load: {requestsPerDay: 60000}", load),
    ):
        assert before in text
        text = text.replace(before, after)
    (directory / "mine.yaml").write_text(text, encoding="utf-8")
    return blueprints("plan", "mine.yaml", *arguments, folder=directory)


def test_a_day_that_fits_is_shown(tmp_path: Path) -> None:
    shown = plan(tmp_path, "load: {requestsPerDay: 60000}", "--full")
    assert shown.code == 0
    assert "concurrent requests," in shown.out
    assert "AWS quotas for batch" in shown.out
    assert "exceeded" not in shown.out


def test_without_a_load_nothing_is_said_of_it(tmp_path: Path) -> None:
    shown = plan(tmp_path, "priority: 10", "--full")
    assert shown.code == 0
    assert "AWS quotas for batch" not in shown.out


def test_a_quota_that_aws_does_not_raise_ends_it(tmp_path: Path) -> None:
    load = "load: {requestsPerDay: 20000000, requestsPerJob: 20000000}"
    shown = plan(tmp_path, load, "--output", "json", workers=300)
    assert shown.code == 1
    exceeded = {each["name"] for each in json.loads(shown.out)["serviceQuotas"] if each["isExceeded"]}
    assert "s3.parts" in exceeded
    told = plan(tmp_path, load, workers=300)
    assert told.code == 1
    assert "AWS does not raise this quota" in " ".join(told.out.split())
    assert "S3, Parts of an upload: " in told.err
