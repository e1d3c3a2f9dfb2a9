"""The canary of a platform, which is the same on every target."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

from inference_blueprints.spec.types import Model, Observability
from inference_constructs.network import Gateway
from inference_constructs.observability import ModelCanary


def add_canary(
    stack: cdk.Stack,
    *,
    platform: str,
    observability: Observability,
    models: Sequence[Model],
    vpc: ec2.IVpc,
    gateway: Gateway,
    encryption_key: kms.IKey,
) -> None:
    """Add the function that asks every model, if the blueprint has one.

    stack: Stack of the platform's metrics.
    platform: `metadata.name`.
    observability, models: Sections of the blueprint.
    vpc, gateway: Network of the models, and their load balancer.
    encryption_key: KMS key of its log.
    """
    if observability.canary is None:
        return
    ModelCanary(
        stack,
        "Canary",
        platform=platform,
        models=[
            {
                "name": model.name,
                "url": f"{gateway.scheme}://{model.name}.{gateway.zone_name}/v1",
                "task": model.task,
            }
            for model in models
        ],
        every_minutes=observability.canary.every_minutes,
        vpc=vpc,
        gateway=gateway,
        retention_days=observability.logs.retention_days,
        encryption_key=encryption_key,
    )
