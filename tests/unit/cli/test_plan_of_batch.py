"""What `plan` says of a day of batch, and when it refuses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from inference_blueprints.resources import blueprints_directory

BLUEPRINTS = Path(sys.executable).parent / "blueprints"


def plan(directory: Path, load: str, *arguments: str, workers: int = 2) -> subprocess.CompletedProcess[str]:
    text = (blueprints_directory() / "batch-g6e.yaml").read_text(encoding="utf-8")
    # A request a second each.
    for before, after in (
        ("nodes: {max: 3}", f"nodes: {{max: {workers}}}"),
        ("peakRequestsPerSecond: 2}", f"peakRequestsPerSecond: {workers}}}"),
        ("replicas: 2,", f"replicas: {workers},"),
        ("load: {requestsPerDay: 100000}", load),
    ):
        assert before in text
        text = text.replace(before, after)
    (directory / "mine.yaml").write_text(text, encoding="utf-8")
    command = [str(BLUEPRINTS), "plan", "mine.yaml", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_a_day_that_fits_is_shown(tmp_path: Path) -> None:
    shown = plan(tmp_path, "load: {requestsPerDay: 100000}")
    assert shown.returncode == 0
    assert "concurrent requests," in shown.stdout
    assert "AWS quotas for batch" in shown.stdout
    assert "exceeded" not in shown.stdout


def test_without_a_load_nothing_is_said_of_it(tmp_path: Path) -> None:
    shown = plan(tmp_path, "priority: 10")
    assert shown.returncode == 0
    assert "AWS quotas for batch" not in shown.stdout


def test_a_quota_that_aws_does_not_raise_ends_it(tmp_path: Path) -> None:
    load = "load: {requestsPerDay: 20000000, requestsPerJob: 20000000}"
    shown = plan(tmp_path, load, "--output", "json", workers=300)
    assert shown.returncode == 1
    exceeded = {each["name"] for each in json.loads(shown.stdout)["serviceQuotas"] if each["isExceeded"]}
    assert "s3.parts" in exceeded
    told = plan(tmp_path, load, workers=300)
    assert told.returncode == 1
    assert "exceeded" in told.stdout
    assert "S3, Parts of an upload: " in told.stderr
    assert "Traceback" not in told.stderr + shown.stderr
