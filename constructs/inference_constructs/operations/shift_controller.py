"""The capacity shift: a function that sets floors, quotas and batch's ceilings each minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_blueprints.contracts import operations_names, shift_names
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.operations.controller_access import ControllerAccess
from inference_constructs.operations.controller_function import ControllerFunction, controller_role
from inference_constructs.operations.controller_place import ControllerPlace
from inference_constructs.operations.minute_schedule import MinuteSchedule

#: Name of the document with the configuration, in the function's code.
SHIFT_DOCUMENT = "shift.json"


class ShiftController(Construct):
    """A function that runs each minute, with narrow access.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    cluster
        The cluster, imported.
    code
        Its code, with the document `SHIFT_DOCUMENT`.
    layer_arns
        Layers with numpy.
    scaled_objects
        Names of the ScaledObjects whose floors it sets.
    cluster_queues
        Names of the ClusterQueues whose quotas it sets.
    batch
        Batch's tables. It may write ceilings, and nothing else.
    shifts
        Whether it may change anything. Otherwise it can only read.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        cluster: eks.ICluster,
        code: lambda_.Code,
        layer_arns: Sequence[str],
        scaled_objects: Sequence[str],
        cluster_queues: Sequence[str],
        batch: BatchStore,
        shifts: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        role = controller_role(self, "Role", place)
        if shifts:
            batch.grant_ceilings(role)
        ControllerAccess(
            self,
            "Access",
            cluster=cluster,
            cluster_name=place.cluster.name,
            role=role,
            group=operations_names.SHIFT_GROUP,
            rules=shift_rules(scaled_objects, cluster_queues, shifts=shifts),
        )
        self.function = ControllerFunction(
            self,
            "Minute",
            place=place,
            name=shift_names.SHIFT_CONTROLLER,
            role=role,
            code=code,
            handler="capacity_shift.handlers.shift",
            environment={
                shift_names.SHIFT_CONFIGURATION: SHIFT_DOCUMENT,
                shift_names.SHIFT_BATCH_TABLE: batch.table_name,
            },
            # A new process reads two weeks of demand first.
            timeout_seconds=55,
            memory_mib=1769,
            layer_arns=layer_arns,
        )
        MinuteSchedule(
            self,
            "Schedule",
            place=place,
            function=self.function,
            says="Forecasts demand and shifts capacity between real time and batch",
        )


def shift_rules(
    scaled_objects: Sequence[str], cluster_queues: Sequence[str], *, shifts: bool
) -> list[Mapping[str, Any]]:
    """Return what the function may do in the cluster: read and patch these objects, and nothing else.

    RBAC can name objects for `get` and `patch`, but not for `list`, so the function reads one by one
    (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources).

    Parameters
    ----------
    scaled_objects, cluster_queues
        Names of the objects.
    shifts
        Whether it may patch.
    """
    verbs = ["get", "patch"] if shifts else ["get"]
    rules: list[Mapping[str, Any]] = [
        {
            "apiGroups": ["keda.sh"],
            "resources": ["scaledobjects"],
            "resourceNames": list(scaled_objects),
            "verbs": verbs,
        },
        {
            "apiGroups": ["autoscaling"],
            "resources": ["horizontalpodautoscalers"],
            "resourceNames": [f"keda-hpa-{name}" for name in scaled_objects],
            "verbs": ["get"],
        },
    ]
    if cluster_queues:
        rules.append(
            {
                "apiGroups": ["kueue.x-k8s.io"],
                "resources": ["clusterqueues"],
                "resourceNames": list(cluster_queues),
                "verbs": verbs,
            }
        )
    return rules
