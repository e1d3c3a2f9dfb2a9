"""Environment variables that all controllers have: `operations_names` documents them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_contracts import operations_names as names
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
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
)
#: Those of a cluster of Amazon EKS. Amazon ECS has one instead.
_OF_KUBERNETES = (names.CLUSTER, names.CLUSTER_ENDPOINT, names.CLUSTER_AUTHORITY)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, and the services that its controllers call."""

    platform: str
    name: str
    """Its cluster."""
    topic_arn: str
    """Topic that tells people."""
    freeze_parameter: str
    """Name of the parameter with the freeze switch."""
    ecs_cluster: str
    """Name of its cluster of Amazon ECS. Empty on EKS."""
    table: OperationsTable
    metrics: CloudWatchPromql
    """`table`, `metrics`: The services."""
    api_server: KubernetesApi | None
    """Its API server. None on ECS."""

    @property
    def kubernetes(self) -> KubernetesApi:
        """The API server of a cell on EKS. Raises OperationsSettingsError if the cell is on ECS."""
        if self.api_server is None:
            raise OperationsSettingsError(f"the cell {self.name} of {self.platform} has no API server")
        return self.api_server

    def freeze(self, controller: Controller) -> FreezeState:
        """Return whether a controller may act now."""
        return read_freeze(aws_clients.client("ssm"), self.freeze_parameter, controller)


def read_cell(environment: Mapping[str, str]) -> Cell:
    """Return the cell of the environment. Raises OperationsSettingsError if variables are missing."""
    ecs_cluster = environment.get(names.ECS_CLUSTER, "")
    required = _REQUIRED if ecs_cluster else (*_REQUIRED, *_OF_KUBERNETES)
    absent = [name for name in required if not environment.get(name)]
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
        ecs_cluster=ecs_cluster,
        metrics=function_promql(environment.get(names.METRICS_ENDPOINT)),
        api_server=None if ecs_cluster else eks_api(*(environment[name] for name in _OF_KUBERNETES)),
    )
