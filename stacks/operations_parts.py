"""What the controllers of all targets share: code, settings, the topic for people, alarms on hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

import inference_catalog as catalog
from inference_blueprints.render.monitoring.hardware_alarms import hardware_alarms
from inference_blueprints.spec.types import Alarms, GpuHealth, Pool
from inference_catalog.gpu_faults import gpu_faults_file
from inference_constructs import function_code
from inference_constructs.observability import AlarmQuery, AlarmTopic
from inference_contracts.health_names import FAULTS_FILE
from inference_runtime import runtime_directory

#: Packages that Lambda does not provide. Powertools needs the second.
_PACKAGES = ("aws_lambda_powertools", "typing_extensions")


def controller_code(controller: str, documents: Mapping[str, str]) -> lambda_.Code:
    """Return the code of a controller: its program, its pure decisions of the same name, and documents.

    Parameters
    ----------
    controller
        Folder of the program in ``runtime``.
    documents
        Text by name of a file that the program reads.
    """
    runtime = runtime_directory()
    return function_code(
        runtime / controller, runtime / "operations", packages=_PACKAGES, documents=documents
    )


def health_code() -> lambda_.Code:
    """Return the code of GPU health, with the table of faults."""
    return controller_code("gpu_health", {FAULTS_FILE: gpu_faults_file().read_text("utf-8")})


def people_topic(scope: Construct, alarms: Alarms | None) -> sns.ITopic:
    """Return the topic that tells people: the one of the blueprint, or a new one.

    Parameters
    ----------
    scope
        The stack of the controllers.
    alarms
        Who is told. None if nobody is: then the topic has no subscription.
    """
    if alarms is not None and alarms.topic_arn is not None:
        return sns.Topic.from_topic_arn(scope, "Topic", alarms.topic_arn)
    return AlarmTopic(scope, "People", emails=(alarms.emails or []) if alarms else []).topic


def hardware_queries(
    platform: str, pools: Sequence[Pool], *, recorded_only: bool = False
) -> list[AlarmQuery]:
    """Return the alarms on the hardware of a platform's pools.

    Parameters
    ----------
    platform
        `metadata.name`.
    pools
        Section of the blueprint.
    recorded_only
        Whether to leave out alarms on series of the CloudWatch add-on, which exists on EKS only.
    """
    return [
        AlarmQuery(
            name=alarm.kind,
            query=alarm.query(platform),
            says=alarm.says,
            runbook=alarm.runbook,
            pending_seconds=alarm.pending_seconds,
            recovery_seconds=alarm.recovery_seconds,
            evaluation_seconds=alarm.evaluation_seconds,
        )
        for alarm in hardware_alarms(pools)
        if alarm.faults or not recorded_only
    ]


def health_settings(gpu_health: GpuHealth, pools: Sequence[Pool]) -> dict[str, object]:
    """Return the section in the format that the functions read.

    Parameters
    ----------
    gpu_health, pools
        Sections of the blueprint.
    """
    types = {name: catalog.instance_type(name) for pool in pools for name in pool.instance_types}
    return {
        "action": gpu_health.action,
        "repairedBy": {pool.name: pool.repaired_by for pool in pools},
        "maxUnhealthyPercent": gpu_health.max_unhealthy_percent,
        "replacementsPerHour": gpu_health.replacements_per_hour,
        "slowGpus": gpu_health.slow_gpus,
        "accelerators": {name: each.device_count for name, each in types.items()},
    }
