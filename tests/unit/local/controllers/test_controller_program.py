"""The program that calls a deployed handler: its clock, its errors, and what it answers in place of AWS."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference_local.controllers import controller_program
from inference_local.controllers.controller_outcomes import calls
from inference_local.controllers.controller_program import ControllerCaller

FACTOR = 100.0
NOBODY = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
#: A handler whose second call fails. It notes its clock, and what CloudWatch answers.
HANDLER = """
import json, time
from pathlib import Path
import boto3

noted = []

def handle(event, context):
    noted.append(time.time())
    if len(noted) == 2:
        raise ValueError("broken")
    answer = boto3.client("cloudwatch", region_name="us-west-2").get_metric_data(
        MetricDataQueries=[], StartTime=0, EndTime=1)
    result = answer["MetricDataResults"][0]
    Path(__file__).with_name("noted.json").write_text(
        json.dumps([noted, [at.timestamp() for at in result["Timestamps"]], result["Values"]]))
"""


@pytest.fixture
def answers() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = json.dumps([[600.0, 3.5]]).encode()
            self.send_response(200 if self.path == "/batch-in-flight" else 404)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.clock
def test_it_calls_again_and_again_by_a_faster_clock_also_after_an_error(tmp_path: Path, answers: str) -> None:
    (tmp_path / "deployed.py").write_text(HANDLER)
    began, results = time.time(), tmp_path / "calls.jsonl"
    settings = {
        "handler": "deployed.handle",
        "began": began,
        "factor": FACTOR,
        "everySeconds": 0.05,
        "answers": answers,
        "results": str(results),
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    process = subprocess.Popen(
        [sys.executable, "-P", controller_program.__file__, str(tmp_path / "settings.json")],
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
        },
    )
    try:
        while not results.exists() or len(results.read_text().splitlines()) < 3:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    count, errors = calls(results)
    assert count >= 3
    assert errors == ["ValueError: broken"]
    noted, times, values = json.loads((tmp_path / "noted.json").read_text())
    at = [json.loads(line)["at"] for line in results.read_text().splitlines()]
    for shown, real in zip(noted, at, strict=False):
        # The handler looks at its clock later than the program notes the call.
        assert shown >= began + (real - began) * FACTOR - 1e-3
    assert (times, values) == ([600.0], [3.5])


def test_ceilings_get_the_real_time_and_other_items_keep_theirs() -> None:
    caller = ControllerCaller({"began": 1000.0, "factor": FACTOR})
    caller._real_time = lambda: 1002.5
    item = {"id": "ceiling#qwen", "record": {"places": 4, "at": 10**12}, "expires": 5}
    changed = caller._in_real_time({"TableName": "t", "Item": item})
    assert changed["Item"]["record"]["at"] == 1002
    assert changed["Item"]["record"]["places"] == 4
    other = {"TableName": "t", "Item": {"id": "job#1", "record": {"at": 10**12}}}
    assert caller._in_real_time(other) is other
    assert caller.clock() == 1250.0
