"""Asks the Prometheus of the metrics task, which listens in the network of its task only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from inference_local.prometheus.local_prometheus import Sample
from inference_local.serving import namespace

_URL = "http://127.0.0.1:9090/api/v1"
_ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).read().decode())"


def asked_inside(process: int, url: str) -> str:
    """Return the answer of a server in the network of a task.

    process: One of the task's processes.
    Raises subprocess.CalledProcessError if there is no answer.
    """
    inside = [sys.executable, "-I", "-S", namespace.__file__, "join", str(process)]
    command = [*inside, sys.executable, "-I", "-S", "-c", _ASK, url]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class TaskPrometheus:
    """Answers queries as `LocalPrometheus` does.

    process: Returns the process of the container now: a task that is replaced has another one.
    """

    def __init__(self, process: Callable[[], int]) -> None:
        self._process = process

    def query(self, expression: str) -> list[Sample]:
        result = self._get("query", {"query": expression})
        return [Sample(each["metric"], float(each["value"][1])) for each in result]

    def query_range(
        self, expression: str, *, start: float, end: float, step_seconds: float
    ) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        parameters = {
            "query": expression,
            "start": str(start),
            "end": str(end),
            "step": str(step_seconds),
        }
        return [
            (each["metric"], [(float(at), float(value)) for at, value in each["values"]])
            for each in self._get("query_range", parameters)
        ]

    def _get(self, path: str, parameters: Mapping[str, str]) -> list[Any]:
        answer = asked_inside(self._process(), f"{_URL}/{path}?{urlencode(parameters)}")
        return list(json.loads(answer)["data"]["result"])
