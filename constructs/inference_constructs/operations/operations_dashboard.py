"""The dashboard of operations: what the controllers found, did and left to people."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from inference_constructs.operations.controller_place import ControllerPlace
from inference_contracts import health_names, operations_names, shift_names

_WIDTH, _HEIGHT = 8, 6


class OperationsDashboard(Construct):
    """One dashboard of a cell.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    alarms
        Alarms whose state it shows.
    health, shift
        Whether GPU health and the capacity shift run.
    reboots
        Whether GPU health reboots nodes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        alarms: Sequence[cloudwatch.IAlarm],
        health: bool,
        shift: bool,
        reboots: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self._place = place
        rows: list[list[cloudwatch.IWidget]] = [
            [
                cloudwatch.AlarmStatusWidget(
                    alarms=list(alarms), title="Alarms", width=3 * _WIDTH, height=_HEIGHT // 2
                )
            ]
        ]
        if health:
            rows += self._health(reboots=reboots)
        if shift:
            rows += self._shift()
        cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.days(1), widgets=rows)

    def _health(self, *, reboots: bool) -> list[list[cloudwatch.IWidget]]:
        service = operations_names.HEALTH_SERVICE
        rebooted = ", rebooted" if reboots else ""
        return [
            [
                self._graph(
                    "Cases of broken and slow GPUs: opened, and confirmed",
                    service,
                    [health_names.CASES_OPENED, health_names.CASES_CONFIRMED],
                ),
                self._graph(
                    f"Nodes cordoned{rebooted} and replaced; cases refused and given up",
                    service,
                    [
                        health_names.NODES_CORDONED,
                        *([health_names.NODES_REBOOTED] if reboots else []),
                        health_names.NODES_REPLACED,
                        health_names.CASES_REFUSED,
                        health_names.CASES_GIVEN_UP,
                    ],
                ),
                self._graph(
                    "Cases open, in flight, and held because too many nodes are unhealthy",
                    service,
                    [
                        health_names.CASES_OPEN,
                        health_names.CASES_IN_FLIGHT_METRIC,
                        health_names.CASES_HELD,
                    ],
                    statistic="Maximum",
                ),
            ],
            [
                self._graph(
                    "Workers compared, and worse than their peers; units that moved together",
                    service,
                    [
                        health_names.WORKERS_COMPARED,
                        health_names.WORKERS_SUSPICIOUS,
                        health_names.UNITS_MOVED,
                    ],
                    statistic="Maximum",
                ),
                self._graph(
                    "Seconds from a hardware event to the decision, of a run, and since workers reported",
                    service,
                    [
                        health_names.DECISION_SECONDS,
                        operations_names.RUN_SECONDS,
                        health_names.METRICS_AGE_SECONDS,
                    ],
                    statistic="p99",
                ),
                self._graph(
                    "Frozen; runs without metrics",
                    service,
                    [operations_names.FROZEN, operations_names.METRICS_UNREADABLE],
                    statistic="Maximum",
                ),
            ],
        ]

    def _shift(self) -> list[list[cloudwatch.IWidget]]:
        service = operations_names.SHIFT_SERVICE
        return [
            [
                self._graph(
                    "Floors of real time, in replicas, and places that batch may have",
                    service,
                    [shift_names.SHIFT_FLOORS, shift_names.SHIFT_BATCH_PLACES],
                    statistic="Maximum",
                ),
                self._graph(
                    "Changes made, and changes that failed",
                    service,
                    [shift_names.SHIFT_CHANGES, shift_names.SHIFT_FAILURES],
                ),
                self._graph(
                    "Frozen; runs without metrics; deployments whose demand is not known",
                    service,
                    [
                        operations_names.FROZEN,
                        operations_names.METRICS_UNREADABLE,
                        shift_names.SHIFT_UNMEASURED,
                    ],
                    statistic="Maximum",
                ),
            ]
        ]

    def _graph(
        self, title: str, service: str, names: Sequence[str], *, statistic: str = "Sum"
    ) -> cloudwatch.IWidget:
        """Return a graph whose axis starts at zero."""
        return cloudwatch.GraphWidget(
            title=title,
            left=[self._place.metric(name, service, statistic=statistic) for name in names],
            left_y_axis=cloudwatch.YAxisProps(min=0),
            width=_WIDTH,
            height=_HEIGHT,
        )
