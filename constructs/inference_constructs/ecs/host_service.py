"""An ECS service with one task on each host of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_ecs as ecs
from constructs import Construct

from inference_constructs.ecs.task_definition import task_definition
from inference_contracts.ecs_names import POOL_ATTRIBUTE


class HostService(Construct):
    """A task definition and its service with the scheduling strategy ``DAEMON``.

    ECS starts its task before others on a new host, and stops it after them. It is not for Managed Instances,
    whose daemons are another resource: there, a daemon that stops makes ECS replace the host.

    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_service-options.html
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/managed-daemons.html

    Parameters
    ----------
    cluster_name
        Cluster of the service.
    name
        Name of the service, unique in the cluster.
    pool
        Pool of the hosts.
    task
        A request of RegisterTaskDefinition, with references as values.
    tags
        Tags of the service, which its tasks get.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        name: str,
        pool: str,
        task: Mapping[str, Any],
        tags: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        definition = task_definition(self, task)
        service = ecs.CfnService(
            self,
            "Service",
            cluster=cluster_name,
            # A host has one such task, so the old one ends before the new one starts: a daemon service takes
            # no other percentage than 100 (API reference, DeploymentConfiguration, maximumPercent).
            deployment_configuration=ecs.CfnService.DeploymentConfigurationProperty(
                maximum_percent=100, minimum_healthy_percent=0
            ),
            enable_ecs_managed_tags=True,
            enable_execute_command=False,
            # It starts no hosts, so it needs no capacity provider.
            launch_type="EC2",
            placement_constraints=[
                ecs.CfnService.PlacementConstraintProperty(
                    type="memberOf", expression=f"attribute:{POOL_ATTRIBUTE} == {pool}"
                )
            ],
            propagate_tags="SERVICE",
            scheduling_strategy="DAEMON",
            service_name=name,
            task_definition=definition.ref,
        )
        for key, value in tags.items():
            service.tags.set_tag(key, value)
