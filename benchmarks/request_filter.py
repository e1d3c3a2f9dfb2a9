"""What the filter of requests adds to Dynamo's frontend: processor time and time of a request.

A frontend with the plan's arguments of quickstart-g6e gets the requests of `frontend_load`, in front of
simulated workers that answer at once. Both programs are measured in the same run, so the shares depend little
on other work of the machine. `request_filter_latency` is the difference of the medians of short requests that
are sent in turn through the filter and to the frontend itself. A chunk is a token of a streamed answer.
"""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.harness.figure import Figure
from benchmarks.harness.measured_frontend import Load, MeasuredFrontend, write_large_model
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup

_BLUEPRINT = "quickstart-g6e"
_WARM = Load(40, 200, 20)
_SHORT, _PROMPT, _ANSWER = Load(600, 20, 1), Load(100, 6000, 1), Load(100, 20, 800)
_PAIRS = 400


def measure() -> list[Figure]:
    """Take the measurement."""
    with tempfile.TemporaryDirectory() as directory, ProcessGroup() as processes:
        folder = Path(directory)
        process = build_plan(load_blueprint(_BLUEPRINT).blueprint).models[0].deployments[0].entry_point
        model = write_large_model(folder / "model")
        frontend = MeasuredFrontend(process, "frontend", folder / "filter", model=model, processes=processes)
        frontend.wait()
        frontend.cost(_WARM)
        short, prompt, answer = (_filter_share(frontend, each) for each in (_SHORT, _PROMPT, _ANSWER))
        added = _added_latency(frontend)
        memory = frontend.process.memory_info().rss / 2**20
        processes.check()
    (request, share), (long, long_share), (streamed, stream_share) = short, prompt, answer
    return [
        Figure("request_filter", request * 1e3, "ms per request"),
        Figure("request_filter_share", 100 * share, "% of the frontend"),
        Figure("request_filter_prompt", long * 1e3, "ms per request with 6,000 words"),
        Figure("request_filter_prompt_share", 100 * long_share, "% of the frontend"),
        Figure(
            "request_filter_chunk", (streamed - request) / (_ANSWER.answer_tokens - 1) * 1e6, "us per chunk"
        ),
        Figure("request_filter_stream_share", 100 * stream_share, "% of the frontend"),
        Figure("request_filter_latency", added * 1e3, "ms added to a request"),
        Figure("request_filter_memory", memory, "MiB"),
    ]


def _filter_share(frontend: MeasuredFrontend, load: Load) -> tuple[float, float]:
    """Return the filter's processor time per request, and its share of the frontend's own."""
    before, both = frontend.filter_seconds(), frontend.processor_seconds()
    frontend.cost(load)
    own = frontend.filter_seconds() - before
    others = frontend.processor_seconds() - both - own
    return own / load.requests, own / others


def _added_latency(frontend: MeasuredFrontend) -> float:
    """Return the difference of the medians of both ways, in seconds."""
    [program] = frontend.process.children()
    ports = {each.laddr.port for each in program.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
    direct = next(port for port in sorted(ports) if _answers(port))
    times: dict[int, list[float]] = {frontend.port: [], direct: []}
    for _ in range(_PAIRS):
        for port, seconds in times.items():
            start = time.perf_counter()
            _ask(port)
            seconds.append(time.perf_counter() - start)
    return statistics.median(times[frontend.port]) - statistics.median(times[direct])


def _answers(port: int) -> bool:
    try:
        _ask(port)
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return True


def _ask(port: int) -> None:
    """Send one short request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"model": "measured", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != http.client.OK:
        raise ValueError(content)
