"""`make run BLUEPRINT=streaming-g6e`: the Flink job beside a platform, killed in the middle of a stream."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from inference_contracts.dead_letters import StreamedAnswer
from inference_local.streaming.streaming_clients import read_history
from tests.local.conftest import BLUEPRINTS, Run
from tests.local.door_blueprints import PUBLIC, behind_a_door, cost, usage

REDRIVEN = StreamedAnswer(
    job="shopper",
    signal="shopper-intent",
    session="s",
    version=1,
    value="{}",
    model="m",
    prompt_hash="h",
    time=1,
    attempts=1,
    call_millis=1,
    prompt_tokens=1,
    cached_tokens=1,
    answer_tokens=1,
)


def test_nothing_is_lost_or_twice_although_the_job_is_killed(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", "streaming-g6e", "--seconds", "20", "--no-keep")
    try:
        assert run.wait_for_end() == 0, run.output
    finally:
        run.process.terminate()
        run.process.wait(60)
    assert run.processes_left() == []
    document = json.loads((run.run_directory / "report.json").read_text())
    streaming = document["streaming"]
    assert (streaming["skipped"], streaming["kills"]) == (None, 1)
    assert (streaming["lost"], streaming["duplicated"]) == (0, 0)
    assert streaming["events"] > 20 * 20
    unanswered = streaming["deadLetterReasons"].get("timeout", 0)
    assert streaming["sessions"] == 33
    assert streaming["sessions"] - unanswered <= streaming["signals"] <= streaming["sessions"]
    assert streaming["deadLetterReasons"]["late"] == streaming["late"] > 0
    assert streaming["deadLetterReasons"]["poison"] == streaming["poison"] > 0
    assert streaming["recoverySeconds"] > 0
    assert streaming["eventToSignalMs"]["longest"] > 0
    # Prompts of a session begin alike.
    assert streaming["prefixCacheHitRatio"] > 0.3
    states = {part["name"]: part["state"] for part in document["parts"]}
    assert (states["Kafka"], states["Streaming job shopper"]) == ("real", "real")
    assert not (run.run_directory / "streaming" / "tmp").exists(), "55 MB of Flink"
    assert streaming["waitingMs"]["p50"] > 0
    assert streaming["processingMs"]["p50"] > 0
    assert "0 lost, 0 duplicated" in " ".join(run.output.split())
    # The restart went on from a checkpoint, and the answers are values of the schema.
    assert " from checkpoint " in (run.run_directory / "streaming" / "flink-2.log").read_text()
    rows = read_history(run.run_directory / "streaming" / "history")
    assert all(set(json.loads(row["value"])) == {"intent", "confidence"} for row in rows)
    # The redrive writes lines with the same fields.
    assert {tuple(row) for row in rows} == {tuple(json.loads(REDRIVEN.to_json()))}


def test_the_job_calls_through_a_front_door_and_its_team_pays(tmp_path: Path) -> None:
    """Red if a call passes the door by, or costs its team nothing."""
    file = behind_a_door("streaming-g6e", tmp_path / "door-and-streaming.yaml")
    run = Run(tmp_path / "run", str(file), "--seconds", "20", "--keep", patience_seconds=600)
    try:
        run.wait_for("Press Ctrl-C to stop")
        document = json.loads((run.run_directory / "report.json").read_text())
        command = ["local", "env", "--output", "json", "--run-directory", str(run.run_directory)]
        shown = subprocess.run([str(BLUEPRINTS), *command], capture_output=True, check=True).stdout
        found = usage(file, json.loads(shown))
    finally:
        run.process.terminate()
        run.process.wait(60)
    assert run.processes_left() == []
    streaming, door = document["streaming"], document["frontDoor"]
    assert (streaming["lost"], streaming["duplicated"]) == (0, 0)
    assert found.keys() == {PUBLIC, "streaming:shopper"}
    of_job = found["streaming:shopper"]
    # The job that was killed may have sent more than it could write.
    assert of_job["requests"] - of_job["failed"] >= streaming["signals"] > 0
    assert of_job["team"] == "ads"
    assert of_job["usd"] == pytest.approx(cost(of_job["inputTokens"], of_job["outputTokens"]))
    assert (found[PUBLIC]["requests"], door["failures"]) == (door["requests"], 0)
