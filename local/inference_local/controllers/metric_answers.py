"""Answers a controller's PromQL from the run's Prometheus, by the controller's faster clock."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from inference_blueprints.render.monitoring.platform_rules import WORKER_LABELS
from inference_blueprints.render.monitoring.recording_rules import RecordingRule, rule_groups, rules
from inference_blueprints.serving.types import ServingPlan
from inference_contracts import batch_names, health_names
from inference_contracts.units import SECONDS_PER_DAY
from inference_local.controllers.run_clock import RunClock
from inference_local.prometheus.local_prometheus import Sample

# Recording rules of a local run: what the controllers read, from what simulated engines report.

_READ_BY_THE_SHIFT = ("serving_requests_in_flight", "serving_workers_up")
_WINDOW_SECONDS = 60.0
#: A scrape for which this machine was too busy makes no gap: CloudWatch gets one sample of many.
_IN_FLIGHT = re.compile(r"(dynamo_frontend_inflight_requests\{[^}]*\})")
#: Requests of Dynamo's workers, without those of their router.
_GENERATE = 'role!="frontend",dynamo_endpoint="generate"'


def controllers_rules(platform: str, plan: ServingPlan, health_factor: float) -> str:
    """Return the rules as a file for Prometheus.

    Those that the shift reads are the platform's own. Those of workers are not: they read vLLM's metrics,
    which Dynamo's mocker (1.6.1) does not have. So they are made from the metrics of Dynamo's own runtime in
    each worker: requests, requests in flight, and bytes of answers, of which each token takes as many as the
    frontends' count of all tokens says. Requests in flight divided by tokens per second is the time per
    token (Little's law).

    platform: `metadata.name`.
    health_factor: How much faster the clock of GPU health goes. Its minute is so much shorter.
    """
    every = rules(platform, plan, objectives={})
    own = [
        replace(each, expression=_IN_FLIGHT.sub(r"last_over_time(\1[5s])", each.expression))
        for each in every
        if each.record in _READ_BY_THE_SHIFT
    ]
    content = rule_groups([*own, *_workers(platform, health_factor)])
    for group in content["groups"]:
        group["interval"] = "1s"
    return yaml.safe_dump(content, sort_keys=False, width=10_000)


def _workers(platform: str, factor: float) -> Iterator[RecordingRule]:
    window, by = f"{round(_WINDOW_SECONDS / factor * 1000)}ms", ", ".join(WORKER_LABELS)
    chosen = f'platform="{platform}",{_GENERATE}'
    sent = f"sum by ({by}) (rate(dynamo_component_response_bytes_total{{{chosen}}}[{window}]))"
    all_sent = f"sum(rate(dynamo_component_response_bytes_total{{{chosen}}}[{window}]))"
    all_tokens = f'sum(rate(dynamo_frontend_output_tokens_total{{platform="{platform}"}}[{window}]))'
    tokens = f"{sent} / scalar({all_sent} / ({all_tokens} > 0))"
    running = f"sum by ({by}) (avg_over_time(dynamo_component_inflight_requests{{{chosen}}}[{window}]))"
    ended = f"rate(dynamo_component_request_duration_seconds_count{{{chosen}}}[{window}])"
    yield RecordingRule(health_names.WORKER_LOAD, tokens, {})
    yield RecordingRule(health_names.WORKER_LATENCY, f"{running} / ({tokens} > 0)", {})
    yield RecordingRule(
        health_names.WORKER_REQUESTS, f"{_WINDOW_SECONDS / factor:g} * sum by ({by}) ({ended})", {}
    )


_DEMAND = "serving_requests_in_flight"


class Queries(Protocol):
    """A Prometheus."""

    def query(self, expression: str) -> list[Sample]:
        """Return the value of an expression now."""
        ...

    def query_range(
        self, expression: str, *, start: float, end: float, step_seconds: float
    ) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        """Return the series of an expression over time."""
        ...


@dataclass(frozen=True, slots=True)
class Past:
    """Demand of the days before the run, which nobody measured: each of them is like the day of the run."""

    release: str
    """The release that has it."""
    demand: Callable[[float], float]
    """Requests in flight by the second of the run."""
    days: int = 2
    """How many days."""


@dataclass(frozen=True, slots=True)
class MetricAnswers:
    """Answers queries as CloudWatch does."""

    prometheus: Queries
    """The run's Prometheus."""
    clock: RunClock
    """The controller's clock."""
    past: Past | None = None
    """Demand before the run. None if the controller needs none."""

    def answer(self, path: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON of an answer.

        path: ``/api/v1/query`` or ``/api/v1/query_range``.
        form: Parameters of the query, with times of the controller's clock.
        """
        query = self.clock.shortened(form["query"])
        result: list[dict[str, Any]]
        if path.endswith("query_range"):
            start, end, step = (float(form[name]) for name in ("start", "end", "step"))
            result = [
                {"metric": dict(labels), "values": [[at, str(value)] for at, value in points]}
                for labels, points in self._range(query, start, end, step)
            ]
        else:
            at = float(form["time"])
            result = [
                {"metric": dict(each.labels), "value": [at, str(each.value)]}
                for each in self.prometheus.query(query)
                if not math.isnan(each.value)
            ]
        return {"status": "success", "data": {"result": result}}

    def _range(
        self, query: str, start: float, end: float, step: float
    ) -> Iterator[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        """Yield the series, with what was before the run."""
        skipped = max(0, math.ceil((self.clock.began - start) / step))
        measured_from = start + skipped * step
        before = dict[str, list[tuple[float, float]]]()
        if self.past is not None and _DEMAND in query:
            times = [start + number * step for number in range(skipped) if start + number * step <= end]
            first = self.clock.began - self.past.days * SECONDS_PER_DAY
            before[self.past.release] = [
                (at, self.past.demand((at - first) % SECONDS_PER_DAY / self.clock.factor))
                for at in times
                if at >= first
            ]
        found = []
        if measured_from <= end:
            real = self.prometheus.query_range(
                query,
                start=self.clock.real(measured_from),
                end=self.clock.real(end) + 1e-3,
                step_seconds=step / self.clock.factor,
            )
            found = [
                (labels, [(self.clock.of(at), value) for at, value in points]) for labels, points in real
            ]
        for labels, points in found:
            # Times are those that were asked for, without the error of the conversion.
            exact = [(start + round((at - start) / step) * step, value) for at, value in points]
            yield labels, [*before.pop(labels.get("release", ""), []), *exact]
        for release, points in before.items():
            if points:
                yield {"release": release}, points


class BatchInFlight:
    """Requests in flight of batch's workers, from the lines of metrics that they write to files.

    directory: Folder with the files.
    clock: The clock of the shift.
    """

    def __init__(self, directory: Path, clock: RunClock) -> None:
        self._directory, self._clock = directory, clock
        self._read: dict[Path, int] = {}
        self._minutes: dict[int, dict[Path, float]] = {}

    def points(self) -> list[tuple[float, float]]:
        """Return the beginning of each minute of the shift's clock, and the requests in flight in it."""
        for path in self._directory.glob("*.log"):
            for line in self._new_lines(path):
                self._take(path, line)
        return [(float(minute * 60), sum(each.values())) for minute, each in sorted(self._minutes.items())]

    def _new_lines(self, path: Path) -> list[str]:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self._read[path] = self._read.get(path, 0) + whole
        return text[:whole].decode(errors="replace").splitlines()

    def _take(self, path: Path, line: str) -> None:
        if batch_names.IN_FLIGHT not in line:
            return
        try:
            content = json.loads(line)
            at, value = content["_aws"]["Timestamp"] / 1000, float(content[batch_names.IN_FLIGHT])
        except (ValueError, KeyError, TypeError):
            return  # a line of another program
        if at >= self._clock.began:
            minute = int(self._clock.of(at)) // 60
            self._minutes.setdefault(minute, {})[path] = value
