"""What is printed of the batch API can be pasted into a shell."""

from __future__ import annotations

from pathlib import Path

from inference_local.batch.batch_job import usage_lines
from inference_local.run_state import RunningBatch

BATCH = RunningBatch("http://127.0.0.1:4566/v1", "mine", "ads", "arn:aws:iam::123456789012:role/Ads", {})


def test_a_folder_with_a_space_stays_one_word() -> None:
    first, variables, request = usage_lines(BATCH, Path("my runs/run"), ".venv/bin/blueprints")
    assert "http://127.0.0.1:4566/v1" in first
    assert "team ads" in first
    assert """="$(.venv/bin/blueprints local token --run-directory 'my runs/run')\"""" in variables
    assert request.startswith('curl -s "$OPENAI_BASE_URL/batches"')
