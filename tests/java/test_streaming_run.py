"""`make run BLUEPRINT=streaming-g6e`: the Flink job beside a platform, killed in the middle of a stream."""

from __future__ import annotations

import json
from pathlib import Path

from inference_contracts.dead_letters import StreamedAnswer
from inference_local.streaming.streaming_clients import read_history
from tests.local.conftest import Run

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
