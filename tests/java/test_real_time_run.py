"""`make run BLUEPRINT=real-time`: the Java ad server beside a whole platform."""

from __future__ import annotations

import json
from pathlib import Path

from tests.local.conftest import Run


def test_pages_get_ads_from_the_model_and_the_report_counts_them(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", "real-time", "--seconds", "5", "--no-keep", "--full")
    try:
        assert run.wait_for_end() == 0, run.output
    finally:
        run.process.terminate()
        run.process.wait(60)
    assert run.processes_left() == []
    document = json.loads((run.run_directory / "report.json").read_text())
    real_time = document["realTime"]
    assert (real_time["skipped"], real_time["models"]) == (None, ["qwen3-1-7b"])
    assert (real_time["requests"], real_time["requestsPerSecond"]) == (100, 20.0)
    # Whether answers are in time depends on what else this machine does. Other reasons would be faults.
    assert set(real_time["fallbackReasons"]) <= {"DEADLINE"}
    assert real_time["fallbacks"] < real_time["requests"]
    assert abs(real_time["inputTokens"] - 500) < 1
    # An answer ends with its JSON object; the workload's number is the limit.
    assert 0 < real_time["outputTokens"] <= 8
    assert {part["name"]: part["state"] for part in document["parts"]}["Ad server"] == "real"
    assert "a Java ad server answered 100 pages" in " ".join(run.output.split())
