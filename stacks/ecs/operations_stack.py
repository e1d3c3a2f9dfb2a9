"""Operations of a platform on ECS: the controllers that watch it and change it."""

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
from inference_constructs.ecs import ServiceShift
from inference_constructs.operations import SHIFT_DOCUMENT, EcsControlledCluster, HealthController, HostAccess
from inference_contracts import health_names
from inference_contracts.shift_configuration import ShiftConfiguration
from stacks.controllers_stack import ControllersStack
from stacks.operations_parts import (
    controller_code,
    hardware_queries,
    health_code,
    health_settings,
)


class EcsOperationsStack(ControllersStack):
    """What the controllers share, their functions, alarms and dashboard.

    Parameters
    ----------
    platform
        `metadata.name`, which is also the name of the cluster.
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
        gpu_health: GpuHealth | None,
        pools: Sequence[Pool],
        shift: ShiftConfiguration | None,
        batch: BatchStore | None,
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
            cluster=EcsControlledCluster(name=platform),
            alarms=alarms,
            vpc=vpc,
            encryption_key=encryption_key,
            retention_days=retention_days,
            env=env,
        )
        self._watch(
            self._add_health(gpu_health, pools) if gpu_health else None,
            self._add_shift(shift, batch) if shift is not None and batch is not None else None,
        )

    def _add_health(self, gpu_health: GpuHealth, pools: Sequence[Pool]) -> HealthController:
        """Add GPU health, with its settings in the environment of its functions."""
        return HealthController(
            self,
            "Health",
            place=self._place,
            access=HostAccess(cluster_name=self._platform, replaces=gpu_health.action == "replace"),
            code=health_code(),
            environment={health_names.HEALTH_SETTINGS: json.dumps(health_settings(gpu_health, pools))},
            # Beside pyarrow, the layer has numpy.
            layer_arns=[catalog.parquet_layers()[self.region]],
            queries=hardware_queries(self._platform, pools, recorded_only=True),
            reservations=any(pool.purchase.reservation or pool.purchase.capacity_block for pool in pools),
        )

    def _add_shift(self, shift: ShiftConfiguration, batch: BatchStore) -> ServiceShift:
        """Add the capacity shift, with what it moves as a document in its code."""
        return ServiceShift(
            self,
            "Shift",
            place=self._place,
            code=controller_code("capacity_shift", {SHIFT_DOCUMENT: shift.as_json()}),
            layer_arns=[catalog.parquet_layers()[self.region]],
            services=[each.name for each in shift.workers],
            batch=batch,
            shifts=shift.action == "shift",
        )
