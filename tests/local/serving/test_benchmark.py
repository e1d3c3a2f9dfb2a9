"""The command `benchmark` against a model that is served on this machine, with real traffic of aiperf's."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from inference_blueprints.measure.completions.served_models import ENGINE_HEADER, ON_PROCESSORS
from inference_blueprints.resources import root
from tests.local.serving.conftest import Served
from tests.unit.command_run import Ran, blueprints

_TRACE = "timestamp,input,output\n0,300,20\n0.5,900,30\n1.5,40,10\n2.0,300,20\n"


def _benchmark(*arguments: str) -> Ran:
    return blueprints("benchmark", *arguments, folder=root())


@pytest.mark.timeout(900)  # the first run on a machine installs aiperf
def test_a_trace_is_asked_as_it_was_recorded_and_compared_with_its_replay(
    served: Served, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(_TRACE)
    options = ("--blueprint", "quickstart-g6e", "--trace", str(trace), "--output", "json")
    result = _benchmark(served.endpoint.base_url, *options)
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["simulated"] is True
    assert (found["requests"], found["failures"]) == (4, 0)
    assert found["demand"]["inputTokens"] == 385
    assert found["demand"]["outputTokens"] == 20
    for way in ("measured", "replayed"):
        assert found[way]["timeToFirstTokenP90Ms"] > 0
        assert found[way]["timePerOutputTokenP90Ms"] > 0
    # Both price the same nodes over the same tokens, so the prompts had the recorded lengths.
    assert found["measured"]["usdPerMillionTokens"] == pytest.approx(
        found["replayed"]["usdPerMillionTokens"], rel=0.1
    )


class _OnProcessors(BaseHTTPRequestHandler):
    """The list of models of an endpoint whose engines run on processors."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header(ENGINE_HEADER, ON_PROCESSORS)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "qwen3-8b"}]}')


def test_times_of_processors_are_not_measured() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _OnProcessors) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = _benchmark(f"http://127.0.0.1:{server.server_port}", "--blueprint", "quickstart-g6e")
        server.shutdown()
    assert refused.code == 1
    assert "its engines run on processors, where times mean nothing" in refused.err


def test_what_cannot_be_asked_is_said_in_one_line(served: Served, tmp_path: Path) -> None:
    nobody = _benchmark("http://127.0.0.1:9", "--blueprint", "quickstart-g6e")
    assert nobody.code == 1
    assert "http://127.0.0.1:9/v1/models: connection refused" in nobody.err
    no_address = _benchmark("nowhere", "--blueprint", "quickstart-g6e")
    assert no_address.code == 1
    assert "expected an address such as" in no_address.err
    other = _benchmark(served.endpoint.base_url, "--blueprint", "p5en-disaggregated")
    assert other.code == 1
    assert "does not serve qwen3-32b; it serves: qwen3-8b" in other.err
    missing = _benchmark(
        served.endpoint.base_url, "--blueprint", "quickstart-g6e", "--trace", str(tmp_path / "no.csv")
    )
    assert missing.code == 1
    assert "no.csv: cannot be read" in missing.err
