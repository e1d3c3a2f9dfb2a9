"""Records as aiperf 0.13.0 writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.benchmarking import aiperf
from inference_blueprints.errors import UserError

ANSWERED = {
    "metadata": {"request_start_ns": 2_000_000_000, "request_end_ns": 2_700_000_000},
    "metrics": {
        "time_to_first_token": {"value": 80.0, "unit": "ms"},
        "request_latency": {"value": 650.0, "unit": "ms"},
        "usage_prompt_tokens": {"value": 317, "unit": "tokens"},
        "usage_completion_tokens": {"value": 20, "unit": "tokens"},
        "usage_prompt_cache_read_tokens": {"value": 64, "unit": "tokens"},
        "inter_chunk_latency": {"value": [22.0, 23.0], "unit": "ms"},
    },
}
FAILED = {
    "metadata": {"request_start_ns": 1_000_000_000, "request_end_ns": 1_000_000_000},
    "metrics": {},
    "error": {"code": 404, "type": "Not Found", "message": "Model not found"},
}


def records(folder: Path, *entries: dict[str, Any]) -> Path:
    path = folder / "profile_export.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def test_answers_and_failures_become_outcomes_in_the_order_of_sending(tmp_path: Path) -> None:
    failed, answered = aiperf.read_records(records(tmp_path, ANSWERED, FAILED))
    assert answered.failure is None
    assert answered.time_to_first_token_ms == pytest.approx(80.0)
    assert answered.end_to_end_ms == pytest.approx(650.0)
    assert answered.time_per_output_token_ms == pytest.approx(570.0 / 19)
    assert answered.usage is not None
    assert (answered.usage.prompt_tokens, answered.usage.cached_tokens) == (317, 64)
    assert (failed.failure, failed.failure_detail) == ("HTTP 404", "Model not found")


def test_an_endpoint_that_counts_nothing_leaves_counts_out(tmp_path: Path) -> None:
    metrics = {name: ANSWERED["metrics"][name] for name in ("time_to_first_token", "request_latency")}
    (outcome,) = aiperf.read_records(records(tmp_path, {**ANSWERED, "metrics": metrics}))
    assert outcome.usage is None
    assert outcome.failure is None


@pytest.mark.parametrize("text", ["{", "{}\n", '{"metadata": {}, "metrics": {}}\n'])
def test_another_form_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile_export.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=r"profile_export\.jsonl: is not what aiperf"):
        aiperf.read_records(path)
    with pytest.raises(UserError, match="missing"):
        aiperf.read_records(tmp_path / "missing.jsonl")
