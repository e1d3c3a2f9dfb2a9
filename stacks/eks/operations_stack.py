"""Operations: controllers that watch the platform and change it, GPU health among them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

import inference_catalog as catalog
from inference_blueprints.spec.types import Alarms, GpuHealth, Pool
from inference_constructs.batch import BatchStore
from inference_constructs.eks import KubectlAccess
from inference_constructs.operations import (
    SHIFT_DOCUMENT,
    ControlledCluster,
    HealthController,
    NodeAccess,
    ShiftController,
)
from inference_contracts import health_names
from inference_contracts.health_names import RepairOwner
from inference_contracts.shift_configuration import ShiftConfiguration
from stacks.controllers_stack import ControllersStack
from stacks.eks.platform_stack import MODEL_NAMESPACE
from stacks.operations_parts import (
    controller_code,
    hardware_queries,
    health_code,
    health_settings,
)


class OperationsStack(ControllersStack):
    """What the controllers share, their functions, alarms and dashboard.

    Parameters
    ----------
    platform
        `metadata.name`.
    access
        The cluster.
    cluster
        How controllers reach the cluster.
    gpu_health, pools
        Sections of the blueprint. No `gpu_health`: nothing looks for broken GPUs.
    shift, batch
        What the capacity shift moves, and the tables of batch. None without them.
    alarms
        Who is told. None if nobody is: then the topic has no subscription.
    vpc
        VPC of the functions.
    encryption_key
        KMS key of the table and of the logs.
    retention_days
        Days for which logs are kept.
    env
        Account and region.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        access: KubectlAccess,
        cluster: ControlledCluster,
        gpu_health: GpuHealth | None,
        shift: ShiftConfiguration | None,
        batch: BatchStore | None,
        pools: Sequence[Pool],
        alarms: Alarms | None,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        retention_days: int,
        env: cdk.Environment,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            platform=platform,
            cluster=cluster,
            alarms=alarms,
            vpc=vpc,
            encryption_key=encryption_key,
            retention_days=retention_days,
            env=env,
        )
        self._cluster = access.import_cluster(self)
        self._watch(
            self._add_health(gpu_health, pools) if gpu_health else None,
            self._add_shift(shift, batch) if shift is not None and batch is not None else None,
        )

    def _add_shift(self, shift: ShiftConfiguration, batch: BatchStore) -> ShiftController:
        """Add the capacity shift, with what it moves as a document in its code."""
        return ShiftController(
            self,
            "Shift",
            place=self._place,
            cluster=self._cluster,
            code=controller_code("capacity_shift", {SHIFT_DOCUMENT: shift.as_json()}),
            layer_arns=[catalog.parquet_layers()[self.region]],
            scaled_objects=[each.name for each in shift.workers],
            cluster_queues=[each.pool for each in shift.queues],
            batch=batch,
            shifts=shift.action == "shift",
        )

    def _add_health(self, gpu_health: GpuHealth, pools: Sequence[Pool]) -> HealthController:
        """Add GPU health, with its settings in the environment of its functions."""
        return HealthController(
            self,
            "Health",
            place=self._place,
            access=NodeAccess(
                cluster=self._cluster,
                cluster_name=self._place.cluster.name,
                model_namespace=MODEL_NAMESPACE,
                replaces=gpu_health.action == "replace",
            ),
            code=health_code(),
            environment={health_names.HEALTH_SETTINGS: json.dumps(_settings(gpu_health, pools))},
            # Beside pyarrow, the layer has numpy.
            layer_arns=[catalog.parquet_layers()[self.region]],
            queries=hardware_queries(self._platform, pools),
            reservations=any(pool.purchase.reservation or pool.purchase.capacity_block for pool in pools),
        )


def _settings(gpu_health: GpuHealth, pools: Sequence[Pool]) -> dict[str, object]:
    """Return the settings, with the NodePool that no blueprint names.

    Karpenter's node repair is off for all NodePools or for none, so GPU health repairs that one too.
    """
    settings = health_settings(gpu_health, pools)
    owners: dict[str, RepairOwner] = {pool.name: pool.repaired_by for pool in pools}
    if "gpuHealth" in owners.values():
        owners[health_names.OVERFLOW_POOL] = "gpuHealth"
    return {**settings, "repairedBy": owners}
