"""Operations: controllers that watch the platform and change it, GPU health among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_blueprints.render.monitoring.hardware_alarms import hardware_alarms
from inference_blueprints.spec.types import GpuHealth, Observability, Pool, Spec
from inference_constructs.batch import BatchStore
from inference_constructs.observability import AlarmQuery
from inference_constructs.operations import (
    ControlledCluster,
    ControllerAlarms,
    ControllerPlace,
    HealthController,
    OperationsDashboard,
    ShiftController,
)
from inference_contracts.health_names import OVERFLOW_POOL, RepairOwner
from inference_contracts.shift_names import SHIFT_CONTROLLER, ShiftConfiguration
from stacks.shared_parts import people_topic


class OperationsStack(cdk.Stack):
    """What the controllers share, their functions, alarms and dashboard.

    platform: `metadata.name`.
    cluster: What returns the cluster that the controllers look after, as this stack reaches it.
    on_ecs: Whether the platform runs on Amazon ECS.
    spec: The blueprint's section.
    shift, batch: What the capacity shift moves, and the tables of batch. None without them.
    observability: Section of the blueprint: who is told, and for how long logs are kept.
    vpc: VPC of the functions.
    encryption_key: KMS key of the table and of the logs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        cluster: Callable[[cdk.Stack], ControlledCluster],
        on_ecs: bool,
        spec: Spec,
        shift: ShiftConfiguration | None,
        batch: BatchStore | None,
        observability: Observability,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        place = ControllerPlace(
            self,
            "Shared",
            platform=platform,
            cluster=cluster(self),
            vpc=vpc,
            encryption_key=encryption_key,
            alarm_topic=people_topic(self, observability.alarms),
            retention_days=observability.logs.retention_days,
        )
        functions: dict[str, lambda_.IFunction] = {}
        health = (
            self._add_health(place, spec.gpu_health, spec.pools, on_ecs=on_ecs) if spec.gpu_health else None
        )
        if health:
            functions |= health.functions
        if moves := shift is not None and batch is not None:
            functions[SHIFT_CONTROLLER] = ShiftController(
                self, "Shift", place=place, shift=shift, batch=batch
            ).function
        watched = ControllerAlarms(self, "Alarms", place=place, functions=functions)
        OperationsDashboard(
            self,
            "Dashboard",
            place=place,
            alarms=[*watched.alarms, *(health.hardware_alarms if health else [])],
            health=health is not None,
            shift=moves,
            reboots=spec.gpu_health is not None and spec.gpu_health.reboots_per_node_per_day > 0,
        )

    def _add_health(
        self, place: ControllerPlace, gpu_health: GpuHealth, pools: Sequence[Pool], *, on_ecs: bool
    ) -> HealthController:
        """Add GPU health. The CloudWatch add-on, which has some of its alarms' series, exists on EKS only."""
        return HealthController(
            self,
            "Health",
            place=place,
            settings=_settings(gpu_health, pools, on_ecs=on_ecs),
            replaces=gpu_health.action == "replace",
            reboots=gpu_health.reboots_per_node_per_day > 0,
            queries=[
                AlarmQuery(
                    name=alarm.kind,
                    query=alarm.query(place.platform),
                    says=alarm.says,
                    runbook=alarm.runbook,
                    pending_seconds=alarm.pending_seconds,
                    recovery_seconds=alarm.recovery_seconds,
                    evaluation_seconds=alarm.evaluation_seconds,
                )
                for alarm in hardware_alarms(pools)
                if alarm.faults or not on_ecs
            ],
            reservations=any(pool.purchase.reservation or pool.purchase.capacity_block for pool in pools),
        )


def _settings(gpu_health: GpuHealth, pools: Sequence[Pool], *, on_ecs: bool) -> dict[str, object]:
    """Return the section in the format that the functions read.

    Karpenter's node repair is off for all NodePools or for none, so GPU health also repairs the NodePool that
    no blueprint names.
    """
    types = {each.name: each for pool in pools for each in pool.types}
    owners: dict[str, RepairOwner] = {pool.name: pool.repaired_by for pool in pools}
    if not on_ecs and "gpuHealth" in owners.values():
        owners[OVERFLOW_POOL] = "gpuHealth"
    return {
        "action": gpu_health.action,
        "repairedBy": owners,
        "maxUnhealthyPercent": gpu_health.max_unhealthy_percent,
        # Without the keys, the functions' environment is that of earlier releases.
        **({"maxRepairingPercent": each} if (each := gpu_health.max_repairing_percent) else {}),
        **({"rebootsPerNodePerDay": each} if (each := gpu_health.reboots_per_node_per_day) else {}),
        "replacementsPerHour": gpu_health.replacements_per_hour,
        "slowGpus": gpu_health.slow_gpus,
        "accelerators": {name: each.device_count for name, each in types.items()},
    }
