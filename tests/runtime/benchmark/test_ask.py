"""The program that runs aiperf, in a process of its own, with a stand-in for aiperf's package."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark.ask import prompt

from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.measure.benchmarking.load_generators import LoadTest, Question
from inference_blueprints.measure.tokenizer import one_token_words, random_text

KEY = "sk-a-secret"
# Answers every request but the second, writes all that it was told, and may fail in the end.
STAND_IN = """
import json, os, pathlib, sys
def app():
    told = dict(zip(sys.argv, sys.argv[1:]))
    results = pathlib.Path(told["--output-artifact-dir"])
    results.mkdir(parents=True)
    lines = [json.loads(line) for line in open(told["--input-file"])]
    seen = {"argv": sys.argv, "command": open("/proc/self/cmdline").read(), "requests": lines,
            "environment": dict(os.environ)}
    pathlib.Path(os.environ["SEEN"]).write_text(json.dumps(seen))
    print("x" * 20000)
    if "--nothing" in sys.argv:
        sys.exit("first line\\nno tokenizer")
    with (results / "profile_export.jsonl").open("w") as file:
        for number, line in enumerate(lines):
            start = int(line["timestamp"] * 1e6)
            metrics = {"time_to_first_token": {"value": 5.0}, "request_latency": {"value": 9.0},
                       "inter_chunk_latency": {"value": [1.0] * 1000}}
            error = {"code": 500, "message": "gone"} if number == 1 else None
            file.write(json.dumps({"metadata": {"request_start_ns": start, "request_end_ns": start,
                "worker_id": "w"}, "metrics": {} if error else metrics, "error": error}) + "\\n")
    sys.exit(1 if "--fails" in sys.argv else 0)
"""

#: Returns the process, and what the stand-in was told.
RunAiperf = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> RunAiperf:
    """Runs the program with requests and arguments."""
    package = tmp_path / "site" / "aiperf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cli.py").write_text(STAND_IN)

    def start(*arguments: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        asked = [Question(0.1 * number, ((3, number), (2, 99)), 4) for number in range(3)]
        document = json.loads(
            gzip.decompress(LoadTest("http://host", "qwen", one_token_words(), asked).packed("builtin"))
        )
        document["arguments"] += arguments
        questions, seen = tmp_path / "questions.json.gz", tmp_path / "seen.json"
        questions.write_bytes(gzip.compress(json.dumps(document).encode()))
        folder = tmp_path / "work"
        folder.mkdir()
        own = {"QUESTIONS": str(questions), "FOLDER": str(folder), "SEEN": str(seen), **environment}
        result = subprocess.run(
            [sys.executable, str(load_generators.program())],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(package.parent), **own},
            capture_output=True,
            text=True,
            check=False,
        )
        return result, json.loads(seen.read_text())

    return start


@pytest.mark.clock
def test_requests_are_sent_at_their_times_and_come_back_without_what_nobody_reads(
    run: RunAiperf,
) -> None:
    result, seen = run()
    assert result.returncode == 0, result.stderr
    assert [line["timestamp"] for line in seen["requests"]] == [0.0, 100.0, 200.0]
    body = seen["requests"][2]["payload"]
    assert body["messages"] == [{"role": "user", "content": random_text(3, 2) + random_text(2, 99)}]
    assert (body["model"], body["max_tokens"], body["ignore_eos"]) == ("qwen", 4, True)
    assert all(line.startswith("records ") for line in result.stdout.splitlines())
    first, failed, last = load_generators.outcomes(result.stdout)
    assert (first.failure, failed.failure, last.failure) == (None, "HTTP 500", None)
    assert first.time_to_first_token_ms == pytest.approx(5.0)
    assert len(result.stdout) < 1000, "not the time of every token"


@pytest.mark.clock
def test_the_key_is_on_no_command_line_and_in_no_environment_of_what_aiperf_starts(
    run: RunAiperf,
) -> None:
    result, seen = run(API_KEY=KEY)
    assert seen["argv"][-2:] == ["--api-key", KEY]
    assert KEY not in seen["command"]
    assert KEY not in json.dumps(seen["environment"])
    assert KEY not in result.stdout + result.stderr


@pytest.mark.clock
def test_without_a_key_none_is_sent(run: RunAiperf) -> None:
    assert "--api-key" not in run()[1]["argv"]


@pytest.mark.clock
def test_nothing_is_written_outside_of_its_folder(run: RunAiperf, tmp_path: Path) -> None:
    _, seen = run()
    assert {seen["environment"][name] for name in ("HOME", "TMPDIR")} == {str(tmp_path / "work")}


@pytest.mark.clock
def test_what_aiperf_wrote_counts_and_not_its_exit_code(run: RunAiperf) -> None:
    """It fails where every request did, and that is what is to be known."""
    result, _ = run("--fails")
    assert result.returncode == 0
    assert len(load_generators.outcomes(result.stdout)) == 3


@pytest.mark.clock
def test_without_records_its_last_words_are_told(run: RunAiperf) -> None:
    result, _ = run("--nothing")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "error: aiperf failed: first line / no tokenizer" in result.stderr


def test_equal_seeds_give_equal_text_and_longer_text_begins_with_the_shorter() -> None:
    assert prompt(one_token_words(), [[5, 1]]).startswith(prompt(one_token_words(), [[3, 1]]))
    assert prompt(one_token_words(), [[3, 1]]) != prompt(one_token_words(), [[3, 2]])
