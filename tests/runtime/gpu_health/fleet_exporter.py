"""What NVIDIA's exporter says of a simulated fleet, recorded and queried by a real Prometheus.

It answers the queries of alarms as CloudWatch does. Prometheus evaluates the whole time at once, as if the
nodes stayed as they are: a query reads nothing later than its time, so its answer is the same. When nodes or
faults change, it evaluates again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from inference_blueprints.render.monitoring.hardware_alarms import hardware_alarm_rows
from inference_blueprints.render.monitoring.recording_rules import rule_file
from inference_local.prometheus.timed_evaluation import (
    TimedEvaluation,
    TimedQuery,
    TimedSeries,
    evaluate,
)
from inference_local.simulators.fleet.fleet_events import HardwareFault

STEP = 60
_XID, _IN_USE = "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_GPU_UTIL"


class FleetExporter:
    """One GPU of each node, scraped each minute.

    platform, pool: Labels of the series.
    nodes: Returns the names of the nodes that run, by their place in the fleet.
    faults: XIDs by the place of their node.
    queries: Queries of the alarms.
    began: When the simulation began, in seconds since the epoch.
    minutes: How long it lasts.
    """

    def __init__(
        self,
        platform: str,
        pool: str,
        nodes: Callable[[], dict[int, str]],
        faults: Sequence[HardwareFault],
        queries: Sequence[str],
        *,
        began: float,
        minutes: int,
    ) -> None:
        self._labels = f'platform="{platform}",pool="{pool}"'
        self._nodes, self._faults = nodes, faults
        self._began, self._steps = began, minutes + 1
        #: Values of the XID of each node from the beginning; None before its first scrape.
        self._xids = dict[str, list[int | None]]()
        self._queries = tuple(queries)
        self._answers = dict[str, tuple[TimedSeries, ...]]()
        self._lines = list[str]()
        self._rules = rule_file([rule for row in hardware_alarm_rows() for rule in row.rules(platform)])

    def scrape(self, step: int) -> None:
        """Read all nodes at a minute. Minutes must come in order."""
        now = self._nodes()
        for place, name in now.items():
            values = self._xids.setdefault(name, [None] * step)
            codes = [
                int(fault.code)
                for fault in self._faults
                if fault.node == place and STEP * step - STEP < fault.at <= STEP * step
            ]
            last = next((value for value in reversed(values) if value is not None), 0)
            values.append(codes[-1] if codes else last)
        for name in set(self._xids) - set(now.values()):
            self._xids[name].append(None)
        lines = [line for name, values in self._xids.items() for line in self._series(name, values)]
        if lines != self._lines:
            self._lines = lines
            self._evaluate()

    def answer(self, query: str, at: float) -> list[dict[str, Any]]:
        """Return the answer of an instant query, as the API of Prometheus writes it."""
        second = at - self._began
        return [
            {"metric": dict(series.labels), "value": [at, str(value)]}
            for series in self._answers[query]
            for when, value in series.values
            if when == second
        ]

    def _series(self, name: str, values: list[int | None]) -> Iterator[str]:
        """Yield the series of a node, which stays as it is. The series of one that is gone are stale."""
        first = next(step for step, value in enumerate(values) if value is not None)
        scraped = ["stale" if value is None else str(value) for value in values[first:]]
        every = ["_"] * first + scraped + [scraped[-1]] * (self._steps - len(values))
        labels = f'{self._labels},node="{name}",gpu="0"'
        yield f"{_XID}{{{labels}}} {' '.join(every)}"
        in_use = " ".join("50" if value.isdigit() else value for value in every)
        yield f"{_IN_USE}{{{labels}}} {in_use}"

    def _evaluate(self) -> None:
        queries = [
            TimedQuery(
                expression=query, start_seconds=0, end_seconds=STEP * (self._steps - 1), step_seconds=STEP
            )
            for query in self._queries
        ]
        evaluation = TimedEvaluation(
            series=self._lines, queries=queries, rules=self._rules, interval_seconds=STEP
        )
        [answers] = evaluate([evaluation], lambda _: None)
        self._answers = dict(zip(self._queries, answers, strict=True))
