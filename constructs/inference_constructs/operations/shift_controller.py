"""The capacity shift on EKS: a function that sets floors of KEDA and quotas of Kueue each minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.operations.controller_access import ControllerAccess
from inference_constructs.operations.controller_place import ControllerPlace
from inference_constructs.operations.shift_function import ShiftFunction
from inference_contracts import operations_names


class ShiftController(ShiftFunction):
    """The function, with narrow access to the API server.

    Parameters
    ----------
    place, code, layer_arns, batch, shifts
        As for every `ShiftFunction`.
    cluster
        The cluster, imported.
    scaled_objects
        Names of the ScaledObjects whose floors it sets.
    cluster_queues
        Names of the ClusterQueues whose quotas it sets.
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
        super().__init__(
            scope, construct_id, place=place, code=code, layer_arns=layer_arns, batch=batch, shifts=shifts
        )
        ControllerAccess(
            self,
            "Access",
            cluster=cluster,
            cluster_name=place.cluster.name,
            role=self.role,
            group=operations_names.SHIFT_GROUP,
            rules=shift_rules(scaled_objects, cluster_queues, shifts=shifts),
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
