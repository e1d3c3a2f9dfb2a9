"""Spans of a real frontend and simulated workers, started with the variables of the plan."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import inference_catalog as catalog
from benchmarks.harness.measured_frontend import Load, MeasuredFrontend
from benchmarks.harness.trace_sink import Span, TraceSink, trace_sink
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup

_PATIENCE_SECONDS = 120.0
_FRONTEND, _ROUTER, _WORKER = "http-request", "kv_router.route_request", "handle_payload"
#: A span that the level `warn` would drop.
_SELECTION = "kv_router.select_worker"
#: A caller's own trace, which it samples: Dynamo follows the decision of a parent.
_TRACE = "ab" * 16
_SAMPLED = {"traceparent": f"00-{_TRACE}-{'cd' * 8}-01"}


@contextmanager
def _traced(ratio: float, folder: Path, log_format: str) -> Iterator[tuple[MeasuredFrontend, TraceSink]]:
    document = load_blueprint("quickstart-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["observability"] = {"traces": {"sampleRatio": ratio}}
    deployment = build_plan(Blueprint.model_validate(document)).models[0].deployments[0]
    (worker,) = deployment.workers
    model = write_model_directory(catalog.model("Qwen/Qwen3-8B"), folder / "model")
    with ProcessGroup() as processes, trace_sink() as sink:
        frontend = MeasuredFrontend(
            deployment.entry_point,
            "frontend",
            folder / "frontend",
            model=model,
            processes=processes,
            variables={"DYN_LOGGING_CONSOLE_FORMAT": log_format, **sink.variables},
            worker_variables={**_tracing(worker), **sink.variables},
        )
        frontend.wait()
        yield frontend, sink


def _tracing(process: Process) -> dict[str, str]:
    return {name: str(value) for name, value in process.environment.items() if name.startswith("OTEL_")}


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _roots(sink: TraceSink) -> dict[str, Span]:
    """Return the frontend's span of each trace, without the caller's own trace."""
    return {
        trace: span
        for trace, spans in sink.traces().items()
        for span in spans
        if span.name == _FRONTEND and trace != _TRACE
    }


def test_the_share_of_traced_requests_is_that_of_the_blueprint(tmp_path: Path) -> None:
    requests, ratio = 400, 0.25
    with _traced(ratio, tmp_path, "readable") as (frontend, sink):
        frontend.cost(Load(requests, 5, 1))
        # Spans leave the frontend in the order of requests: once this one is here, the others are too.
        frontend.cost(Load(1, 5, 1), headers=_SAMPLED)
        _wait(lambda: any(span.name == _FRONTEND for span in sink.traces().get(_TRACE, [])))
        # Six standard deviations of the binomial distribution: outside less than once in a million runs.
        assert 48 <= len(_roots(sink)) <= 152


def test_a_trace_has_a_span_for_each_hop_of_a_request(tmp_path: Path) -> None:
    requests = 20
    with _traced(1.0, tmp_path, "jsonl") as (frontend, sink):
        frontend.cost(Load(requests, 30, 5))

        def complete() -> bool:
            names = [{span.name for span in sink.traces()[trace]} for trace in _roots(sink)]
            return len(names) >= requests and all({_SELECTION, _ROUTER, _WORKER} <= each for each in names)

        _wait(complete)
        roots = _roots(sink)
        assert len(roots) == requests
        for trace, root in roots.items():
            (routed,) = [span for span in sink.traces()[trace] if span.name == _ROUTER]
            (worked,) = [span for span in sink.traces()[trace] if span.name == _WORKER]
            assert (root.parent, routed.parent, worked.parent) == ("", root.identity, routed.identity)
            assert root.service == routed.service == "qwen3-8b-main-frontend"
            assert worked.service == "qwen3-8b-main-worker"
            assert root.start_ns <= routed.start_ns <= worked.start_ns < worked.end_ns
            first_token_ns = float(root.attributes["ttft_ms"]) * 1e6
            assert 0 < first_token_ns <= root.end_ns - root.start_ns
        log = (tmp_path / "frontend" / "frontend.log").read_text()
        assert "BatchLogProcessor" not in log
        lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
        of_requests = [line for line in lines if line.get("trace_id") in roots]
        assert {line["trace_id"] for line in of_requests} == set(roots)
        # One line per request: `DYN_LOG` of the plan keeps what else Dynamo would write of one.
        assert [line["target"] for line in of_requests] == ["request_span"] * requests
