"""How the deployment units of a platform depend on one another."""

from __future__ import annotations

import aws_cdk as cdk

from inference_blueprints import catalog
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_constructs.tags import PLATFORM_TAG
from stacks.cluster_stack import ClusterStack
from stacks.data_stack import DataStack
from stacks.network_stack import NetworkStack
from stacks.platform_stack import PlatformStack

_DEFAULT_ZONES = 3


def add_platform(app: cdk.App, blueprint: Blueprint, plan: ServingPlan) -> None:
    """Add every stack that the blueprint asks for, in deployment order.

    Parameters
    ----------
    app
        The app that the stacks become part of.
    blueprint
        The platform.
    plan
        Its serving plan.
    """
    spec, name = blueprint.spec, blueprint.metadata.name
    environment = spec.environment
    env = cdk.Environment(account=environment.account, region=environment.region)
    zones = environment.availability_zones or catalog.regions()[environment.region][:_DEFAULT_ZONES]
    data = DataStack(app, f"{name}-Data", retain=environment.data_removal == "retain", env=env)
    network = NetworkStack(
        app,
        f"{name}-Network",
        network=spec.network,
        platform=name,
        availability_zones=zones,
        log_bucket=data.log_bucket,
        env=env,
    )
    if spec.cluster.eks:
        cluster = ClusterStack(
            app,
            f"{name}-Cluster",
            eks=spec.cluster.eks,
            cluster_name=name,
            vpc=network.vpc,
            load_balancer_security_group=network.models.security_group,
            model_ports=[8000],
            secrets_key=data.encryption_key,
            env=env,
        )
        PlatformStack(
            app,
            f"{name}-Platform",
            access=cluster.access,
            vpc=network.vpc,
            interruption_queue_name=cluster.karpenter.queue.queue_name,
            env=env,
        )
    cdk.Tags.of(app).add(PLATFORM_TAG, name)
