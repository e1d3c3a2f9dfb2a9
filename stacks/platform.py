"""How the deployment units of a platform depend on one another."""

from __future__ import annotations

import aws_cdk as cdk

from inference_blueprints import catalog
from inference_blueprints.serving.types import ServingPlan, SecretValue
from inference_blueprints.spec.types import Blueprint, EksCluster
from inference_constructs.serving.model_route import listener_priorities
from inference_constructs.tags import PLATFORM_TAG
from stacks.capacity_stack import CapacityStack
from stacks.cluster_stack import ClusterStack
from stacks.data_stack import DataStack
from stacks.model_stack import ModelStack
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
    tags = {**environment.tags, PLATFORM_TAG: name}
    for key, value in tags.items():
        cdk.Tags.of(app).add(key, value)
    data = DataStack(app, f"{name}-Data", retain=environment.data_removal == "retain", env=env)
    network = NetworkStack(
        app,
        f"{name}-Network",
        network=spec.network,
        platform=name,
        availability_zones=environment.availability_zones
        or catalog.regions()[environment.region][:_DEFAULT_ZONES],
        log_bucket=data.log_bucket,
        env=env,
    )
    if spec.cluster.eks:
        _add_eks(app, blueprint, plan, spec.cluster.eks, data, network, env, tags)


def _add_eks(
    app: cdk.App,
    blueprint: Blueprint,
    plan: ServingPlan,
    eks: EksCluster,
    data: DataStack,
    network: NetworkStack,
    env: cdk.Environment,
    tags: dict[str, str],
) -> None:
    """Add the cluster and what runs in it."""
    spec, name = blueprint.spec, blueprint.metadata.name
    cluster = ClusterStack(
        app,
        f"{name}-Cluster",
        eks=eks,
        cluster_name=name,
        vpc=network.vpc,
        load_balancer_security_group=network.models.security_group,
        model_ports=[
            deployment.entry_point.ports[0].number for model in plan.models for deployment in model.deployments
        ],
        secrets_key=data.encryption_key,
        secrets_in_pods=_has_secrets(plan),
        env=env,
    )
    platform = PlatformStack(
        app,
        f"{name}-Platform",
        access=cluster.access,
        vpc=network.vpc,
        interruption_queue_name=cluster.karpenter.queue.queue_name,
        env=env,
    )
    capacity = CapacityStack(
        app,
        f"{name}-Capacity",
        access=cluster.access,
        pools=spec.pools,
        node_role_name=cluster.karpenter.node_role.ref,
        subnet_ids=cluster.subnet_ids,
        security_group_id=cluster.security_group_id,
        instance_tags=tags,
        env=env,
    )
    capacity.add_stack_dependency(platform)
    priorities = listener_priorities([model.name for model in spec.models])
    for model in spec.models:
        ModelStack(
            app,
            f"{name}-Model-{model.name}",
            access=cluster.access,
            plan=plan.model(model.name),
            weights=model.weights,
            gateway=network.models.gateway,
            priority=priorities[model.name],
            env=env,
        ).add_stack_dependency(capacity)


def _has_secrets(plan: ServingPlan) -> bool:
    """Tell whether any process reads a secret."""
    return any(
        isinstance(value, SecretValue)
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
        for value in process.environment.values()
    )
