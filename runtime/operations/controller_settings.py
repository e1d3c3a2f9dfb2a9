"""Environment variables that all controllers have: `operations_names` documents them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.contracts import operations_names as names
from inference_blueprints.promql.cloudwatch_promql import CloudWatchPromql
from operations import aws_clients
from operations.freeze_switch import Controller, FreezeState, read_freeze
from operations.kubernetes_api import KubernetesApi, eks_api
from operations.operations_errors import OperationsSettingsError
from operations.operations_table import OperationsTable
from operations.promql import function_promql

_REQUIRED = (
    names.PLATFORM,
    names.CELL,
    names.TABLE,
    names.FREEZE_PARAMETER,
    names.TOPIC_ARN,
    names.CLUSTER,
    names.CLUSTER_ENDPOINT,
    names.CLUSTER_AUTHORITY,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, and the services that its controllers call.

    Parameters
    ----------
    platform, name
        Platform, and its cluster.
    topic_arn
        Topic that tells people.
    freeze_parameter
        Name of the parameter with the freeze switch.
    table, kubernetes, metrics
        The services.
    """

    platform: str
    name: str
    topic_arn: str
    freeze_parameter: str
    table: OperationsTable
    kubernetes: KubernetesApi
    metrics: CloudWatchPromql

    def freeze(self, controller: Controller) -> FreezeState:
        """Return whether a controller may act now."""
        return read_freeze(aws_clients.client("ssm"), self.freeze_parameter, controller)


def read_cell(environment: Mapping[str, str]) -> Cell:
    """Return the cell of the environment.

    Raises
    ------
    OperationsSettingsError
        If variables are missing.
    """
    absent = [name for name in _REQUIRED if not environment.get(name)]
    if absent:
        raise OperationsSettingsError(f"environment variables are missing: {', '.join(absent)}")
    platform, cell = environment[names.PLATFORM], environment[names.CELL]
    return Cell(
        platform=platform,
        name=cell,
        topic_arn=environment[names.TOPIC_ARN],
        freeze_parameter=environment[names.FREEZE_PARAMETER],
        table=OperationsTable(
            aws_clients.resource("dynamodb").Table(environment[names.TABLE]), platform, cell
        ),
        kubernetes=eks_api(
            environment[names.CLUSTER],
            environment[names.CLUSTER_ENDPOINT],
            environment[names.CLUSTER_AUTHORITY],
        ),
        metrics=function_promql(environment.get(names.METRICS_ENDPOINT)),
    )
