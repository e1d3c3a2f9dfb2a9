"""Runs a real Prometheus 3 on loopback."""

from __future__ import annotations

import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_contracts.metric_labels import SERVING_JOB
from inference_local.control_plane import artefacts, build
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.processes.free_ports import free_ports

_CONFIGURATION = "prometheus.yaml"
_RULES = "rules.yaml"
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """A program with metrics."""

    url: str
    """URL of its metrics, such as ``http://127.0.0.1:40001/metrics``."""
    labels: Mapping[str, str]
    """Labels of all its series, such as those of `TargetLabels.as_mapping`, or meta labels that its job turns
    into labels."""
    job: str = SERVING_JOB


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of the answer to a query."""

    labels: Mapping[str, str]
    value: float
    """Its value. It may be infinite, or no number."""


class LocalPrometheus:
    """Prometheus 3 with its scraper, storage, rules and HTTP API. It is built once, see `build`.

    It joins a process group, which ends it. It listens only on loopback.

    directory: Folder for the configuration, the series and the log. It is created.
    processes: The process group that it joins.
    report: Called with a line when the program is found in the cache or built.
    """

    def __init__(self, directory: Path, processes: ProcessGroup, report: Report) -> None:
        self._directory = directory.resolve()
        self._processes = processes
        self._report = report
        self._port = free_ports(1)[0]
        self._process: RunningProcess | None = None
        self._jobs: Mapping[str, Mapping[str, Any]] = MappingProxyType({SERVING_JOB: {}})

    @property
    def base_url(self) -> str:
        """Its URL, without a path: what KEDA calls ``serverAddress``."""
        return f"http://127.0.0.1:{self._port}"

    def start(
        self,
        targets: Iterable[ScrapeTarget],
        *,
        interval_seconds: float = 1.0,
        rules: str | None = None,
        relabelling: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Start it, and wait until it answers.

        targets: What it scrapes at first. `scrape` replaces them.
        interval_seconds: Time between two scrapes of a target, and between two evaluations of the rules.
        rules: A file of recording rules, or none.
        relabelling: Further jobs with what they do with labels: keys of a scrape configuration, such as
            ``relabel_configs``.
        Raises UserError if the program cannot be built, or does not answer.
        """
        self._jobs = {SERVING_JOB: {}, **(relabelling or {})}
        program = build.program(artefacts.PROMETHEUS, self._report) / artefacts.PROMETHEUS.name
        self._directory.mkdir(parents=True, exist_ok=True)
        self.scrape(targets)
        (self._directory / _CONFIGURATION).write_text(
            _configuration(interval_seconds, [] if rules is None else [_RULES], self._jobs)
        )
        if rules is not None:
            (self._directory / _RULES).write_text(rules)
        address = f"127.0.0.1:{self._port}"
        self._process = self._processes.start(
            "prometheus",
            [program, "serve", self._directory / _CONFIGURATION, self._directory / "data", address],
            environment={"PATH": os.environ.get("PATH", "")},
            log_path=self._directory / "prometheus.log",
        )
        self._wait_until(self._answers, "Prometheus did not answer")

    def stop(self) -> None:
        """Kill it, as a failure of its node would. `start` starts it again with its former series."""
        if self._process is not None:
            self._processes.kill(self._process)
            self._process = None

    def scrape(self, targets: Iterable[ScrapeTarget]) -> None:
        """Replace the targets. Prometheus notices within a second.

        targets: All targets from now on.
        """
        every = list(targets)
        for job in self._jobs:
            draft = self._directory / f".{_targets_file(job)}"
            draft.write_text(json.dumps([_file_target(target) for target in every if target.job == job]))
            draft.rename(self._directory / _targets_file(job))

    def query(self, expression: str) -> list[Sample]:
        """Return the value of a PromQL expression now.

        expression: An expression whose result is an instant vector or a number.
        Raises UserError if Prometheus refuses the expression.
        """
        data = self._get("query", {"query": expression})
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(each["metric"], float(each["value"][1])) for each in data["result"]]

    def number(self, expression: str) -> float | None:
        """Return the single number of a PromQL expression, or None if it has none.

        expression: An expression with at most one series, as KEDA's Prometheus scaler requires.
        Raises UserError if Prometheus refuses the expression, or answers with several series.
        """
        samples = self.query(expression)
        if len(samples) > 1:
            raise UserError(f"{expression}: got {len(samples)} series; a trigger must have one")
        return None if not samples or math.isnan(samples[0].value) else samples[0].value

    def query_range(
        self, expression: str, *, start: float, end: float, step_seconds: float
    ) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        """Return the series of a PromQL expression over time: labels, and pairs of Unix time and value.

        start, end: Unix times.
        step_seconds: Time between two values.
        """
        parameters = {
            "query": expression,
            "start": str(start),
            "end": str(end),
            "step": str(step_seconds),
        }
        return [
            (each["metric"], [(float(at), float(value)) for at, value in each["values"]])
            for each in self._get("query_range", parameters)["result"]
        ]

    def wait_for(self, expression: str, holds: Callable[[Sequence[Sample]], bool] = bool) -> list[Sample]:
        """Wait until the answer to a query is as expected, and return it.

        holds: Whether the answer is as expected. By default, whether there is one.
        Raises UserError if it never is, with the last answer.
        """
        last: list[Sample] = []

        def expected() -> bool:
            nonlocal last
            last = self.query(expression)
            return holds(last)

        self._wait_until(expected, f"Prometheus never had the expected answer to {expression}")
        return last

    def _wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            self._processes.check()
            if time.monotonic() > deadline:
                raise UserError(f"{otherwise} within {_PATIENCE_SECONDS:g} s; see {self._directory}")
            time.sleep(_PAUSE_SECONDS)

    def _answers(self) -> bool:
        try:
            with _open(f"{self.base_url}/-/ready"):
                return True
        except OSError:
            return False

    def _get(self, path: str, parameters: Mapping[str, str]) -> Any:  # the API's JSON
        try:
            with _open(f"{self.base_url}/api/v1/{path}?{urlencode(parameters)}") as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:  # it explains itself
            answer = json.load(error)
        if answer["status"] != "success":
            raise UserError(f"Prometheus refused {parameters.get('query', path)}: {answer['error']}")
        return answer["data"]


def _open(url: str) -> Any:  # a response to read
    # No proxy: it is on this machine.
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=_PATIENCE_SECONDS)


def _targets_file(job: str) -> str:
    return f"targets-{job}.json"


def _file_target(target: ScrapeTarget) -> Mapping[str, Any]:
    parts = urlsplit(target.url)
    labels = {**target.labels, "__metrics_path__": parts.path or "/metrics"}
    return {"targets": [parts.netloc], "labels": labels}


def _configuration(
    interval_seconds: float, rule_files: Sequence[str], jobs: Mapping[str, Mapping[str, Any]]
) -> str:
    interval = f"{round(interval_seconds * 1000)}ms"
    return yaml.safe_dump(
        {
            "global": {
                "scrape_interval": interval,
                "scrape_timeout": interval,
                "evaluation_interval": interval,
            },
            "rule_files": list(rule_files),
            "scrape_configs": [
                {"job_name": job, "file_sd_configs": [{"files": [_targets_file(job)]}], **settings}
                for job, settings in jobs.items()
            ],
        },
        sort_keys=False,
    )
