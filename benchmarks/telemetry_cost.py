"""What observability adds to the processor time of a Dynamo frontend per request.

Three frontends with the plan's arguments of quickstart-g6e serve the same requests of its workload at the
same time, each in front of simulated workers that answer at once. So whatever else the machine does meets all
of them. The first has the variables of the plan without `observability`, and logs as Dynamo does by itself.
The second writes the same lines as JSON. The third has the variables of the plan with `observability` and
traces of 1 % of the requests, which drop four of the five lines per request. Its metrics are read as often
as in the cluster: by two Prometheus servers every 15 seconds and by one CloudWatch agent every 60 seconds, at
the blueprint's peak rate. Its spans go to a program on this machine, by OTLP over HTTP instead of gRPC.

`telemetry_cost` is what the third costs more than the first, the mean over the pairs of rounds.
`telemetry_cost_lower` and `telemetry_cost_upper` are the ends of its 95 % interval (Student's t), and the
goal applies to the upper one. `_logs` is what the second costs more than the first: so much do JSON logs add
if all lines are kept. `_metrics` is the part that comes from reading metrics.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.figure import Figure
from benchmarks.harness.large_vocabulary import write_large_model
from benchmarks.harness.measured_frontend import Load, MeasuredFrontend
from benchmarks.harness.timing import BenchmarkError
from benchmarks.harness.trace_sink import trace_sink
from inference_blueprints.loading import load_blueprint
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

_BLUEPRINT = "quickstart-g6e"
_SAMPLE_RATIO = 0.01
_PAIRS, _REQUESTS, _WARM_REQUESTS, _CONCURRENT = 30, 60, 40, 10
#: 97.5 % of Student's t with 29 degrees of freedom.
_QUANTILE = 2.045
#: Two servers every 15 s, one agent every 60 s.
_READINGS_PER_MINUTE = 9
_MEASURED_READINGS = 200
#: Dynamo's own level. The local commands of processes lower it, unless the plan sets it.
_LOG, _LOG_LEVEL = "DYN_LOG", {"DYN_LOG": "info"}
_UNIT = "% of the processor time per request"
_GOAL = 3.0


@dataclass(frozen=True, slots=True)
class _Pair:
    """Processor seconds of the frontends for the same requests."""

    plain: float
    logs: float
    observed: float


def measure() -> list[Figure]:
    """Take the measurement."""
    plain = load_blueprint(_BLUEPRINT).blueprint
    document = plain.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["observability"] = {"traces": {"sampleRatio": _SAMPLE_RATIO}}
    observed = Blueprint.model_validate(document)
    blueprints = {"plain": plain, "logs": plain, "observed": observed}
    planned = build_plan(observed).models[0].deployments[0].entry_point.environment
    level = _LOG_LEVEL | {name: str(value) for name, value in planned.items() if name == _LOG}
    workload = plain.spec.models[0].workload
    with tempfile.TemporaryDirectory() as directory, ProcessGroup() as processes, trace_sink() as sink:
        folder = Path(directory)
        model = write_large_model(folder / "model")
        variables = {
            "plain": _LOG_LEVEL,
            "logs": {**_LOG_LEVEL, "DYN_LOGGING_JSONL": "true"},
            "observed": {**level, **sink.variables},
        }
        frontends = {}
        for name, blueprint in blueprints.items():
            process = build_plan(blueprint).models[0].deployments[0].entry_point
            frontends[name] = MeasuredFrontend(
                process,
                name,
                folder / name,
                model=model,
                processes=processes,
                variables=variables[name],
            )
        for frontend in frontends.values():
            frontend.wait()
            warm = frontend.cost(
                Load(_WARM_REQUESTS, workload.input_tokens, workload.output_tokens, _CONCURRENT)
            )
        words = round(workload.input_tokens**2 / warm.prompt_tokens)
        load = Load(_REQUESTS, words, workload.output_tokens, _CONCURRENT)
        minutes = _REQUESTS * process.replicas / (60 * workload.peak_requests_per_second)
        readings = round(_READINGS_PER_MINUTE * minutes)
        pairs = [_pair(frontends, load, readings, number) for number in range(_PAIRS)]
        metrics = readings * _reading(frontends["observed"], _MEASURED_READINGS) / _MEASURED_READINGS
        processes.check()
        if not sink.traces():
            raise BenchmarkError("the observed frontend sent no trace")
    return _figures(pairs, metrics)


def _pair(frontends: dict[str, MeasuredFrontend], load: Load, readings: int, number: int) -> _Pair:
    """Measure the frontends at the same time."""
    first = _WARM_REQUESTS + number * load.requests
    with ThreadPoolExecutor() as threads:
        costs = {name: threads.submit(frontend.cost, load, first) for name, frontend in frontends.items()}
    seconds = {name: cost.result().seconds * load.requests for name, cost in costs.items()}
    seconds["observed"] += _reading(frontends["observed"], readings)
    return _Pair(**seconds)


def _reading(frontend: MeasuredFrontend, times: int) -> float:
    """Read the metrics several times; return the processor seconds that it took."""
    before = frontend.processor_seconds()
    for _ in range(times):
        with urllib.request.urlopen(f"http://127.0.0.1:{frontend.port}/metrics", timeout=60) as answer:
            answer.read()
    return frontend.processor_seconds() - before


def _figures(pairs: list[_Pair], metrics: float) -> list[Figure]:
    """Return the figures.

    Parameters
    ----------
    metrics
        Processor seconds of a round's readings of metrics.
    """
    shares = [100 * (pair.observed / pair.plain - 1) for pair in pairs]
    mean = statistics.mean(shares)
    half = _QUANTILE * statistics.stdev(shares) / math.sqrt(len(shares))
    of_logs = statistics.mean(100 * (pair.logs / pair.plain - 1) for pair in pairs)
    of_metrics = statistics.mean(100 * metrics / pair.plain for pair in pairs)
    return [
        Figure("telemetry_cost", mean, _UNIT, simulated=True),
        Figure("telemetry_cost_logs", of_logs, _UNIT, simulated=True),
        Figure("telemetry_cost_lower", mean - half, _UNIT, simulated=True),
        Figure("telemetry_cost_metrics", of_metrics, _UNIT, simulated=True),
        Figure("telemetry_cost_upper", mean + half, _UNIT, goal=_GOAL, simulated=True),
    ]
