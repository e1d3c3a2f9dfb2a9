"""What observability adds to the processor time of a Dynamo frontend per request.

Two frontends with the plan's arguments of quickstart-g6e serve the same requests of its workload at the same
time, each in front of simulated workers that answer at once. So whatever else the machine does meets both of
them. The first has the variables of the plan without `observability`. The second has those of the plan with
`observability` and traces of 1 % of the requests. Its metrics are read as often as in the cluster: by two
Prometheus servers every 15 seconds and by one CloudWatch agent every 60 seconds, at the blueprint's peak
rate. Its spans go to a program on this machine, by OTLP over HTTP instead of gRPC.

Two processes with the same settings differ by several percent, as long as they run. So both frontends are
started anew 16 times, and each start counts as one observation. `telemetry_cost` is what the second costs
more than the first, the mean over the starts; its name ends with `_inconclusive` if the interval contains the
goal. `telemetry_cost_lower` and `telemetry_cost_upper` are the ends
of its 95 % interval (Student's t), and the goal applies to the upper one. `_metrics` is the part that comes
from reading metrics.
"""

from __future__ import annotations

import statistics
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.figure import BenchmarkError, Figure, interval_figures
from benchmarks.harness.measured_frontend import Load, MeasuredFrontend, write_large_model
from benchmarks.harness.trace_sink import TraceSink, trace_sink
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup

_BLUEPRINT = "quickstart-g6e"
_SAMPLE_RATIO = 0.01
_STARTS, _ROUNDS, _REQUESTS, _WARM_REQUESTS, _CONCURRENT = 16, 3, 60, 40, 10
#: Two servers every 15 s, one agent every 60 s.
_READINGS_PER_MINUTE = 9
_MEASURED_READINGS = 20
_UNIT = "% of the processor time per request"
_GOAL = 3.0


@dataclass(frozen=True, slots=True)
class _Start:
    """Processor seconds of the two frontends for the same requests, and of reading metrics among them."""

    plain: float
    observed: float
    metrics: float


def measure() -> list[Figure]:
    """Take the measurement."""
    plain = load_blueprint(_BLUEPRINT).blueprint
    document = plain.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["observability"] = {"traces": {"sampleRatio": _SAMPLE_RATIO}}
    blueprints = {"plain": plain, "observed": Blueprint.model_validate(document)}
    with tempfile.TemporaryDirectory() as directory, trace_sink() as sink:
        model = write_large_model(Path(directory) / "model")
        starts = [_start(blueprints, Path(directory) / f"{number}", model, sink) for number in range(_STARTS)]
        if not sink.traces():
            raise BenchmarkError("the observed frontends sent no trace")
    return _figures(starts)


def _start(blueprints: Mapping[str, Blueprint], folder: Path, model: Path, sink: TraceSink) -> _Start:
    """Start both frontends and measure them at the same time."""
    folder.mkdir()
    workload = own_means(blueprints["plain"].spec.models[0])
    with ProcessGroup() as processes:
        frontends = {}
        for name, blueprint in blueprints.items():
            process = build_plan(blueprint).models[0].deployments[0].entry_point
            frontends[name] = MeasuredFrontend(
                process,
                name,
                folder / name,
                model=model,
                processes=processes,
                variables=sink.variables if name == "observed" else {},
            )
        for frontend in frontends.values():
            frontend.wait()
            warm = frontend.cost(
                Load(_WARM_REQUESTS, workload.input_tokens, workload.output_tokens, _CONCURRENT)
            )
        words = round(workload.input_tokens**2 / warm.prompt_tokens)
        load = Load(_REQUESTS, words, workload.output_tokens, _CONCURRENT)
        minutes = _REQUESTS * process.replicas / (60 * workload.peak_requests_per_second)
        seconds = dict.fromkeys(frontends, 0.0)
        for number in range(_ROUNDS):
            for name, cost in _costs(frontends, load, _WARM_REQUESTS + number * _REQUESTS).items():
                seconds[name] += cost * _REQUESTS
        readings = round(_READINGS_PER_MINUTE * minutes * _ROUNDS)
        metrics = readings * _reading(frontends["observed"], _MEASURED_READINGS) / _MEASURED_READINGS
        processes.check()
    return _Start(seconds["plain"], seconds["observed"] + metrics, metrics)


def _costs(frontends: Mapping[str, MeasuredFrontend], load: Load, first: int) -> dict[str, float]:
    """Return the processor seconds of a request at each frontend."""
    with ThreadPoolExecutor() as threads:
        costs = {name: threads.submit(frontend.cost, load, first) for name, frontend in frontends.items()}
    return {name: cost.result().seconds for name, cost in costs.items()}


def _reading(frontend: MeasuredFrontend, times: int) -> float:
    """Read the metrics several times; return the processor seconds that it took."""
    before = frontend.processor_seconds()
    for _ in range(times):
        with urllib.request.urlopen(f"http://127.0.0.1:{frontend.port}/metrics", timeout=60) as answer:
            answer.read()
    return frontend.processor_seconds() - before


def _figures(starts: Sequence[_Start]) -> list[Figure]:
    """Return the figures."""
    shares = [100 * (start.observed / start.plain - 1) for start in starts]
    of_metrics = statistics.mean(100 * start.metrics / start.plain for start in starts)
    return [
        *interval_figures("telemetry_cost", shares, _UNIT, goal=_GOAL),
        Figure("telemetry_cost_metrics", of_metrics, _UNIT, simulated=True),
    ]
