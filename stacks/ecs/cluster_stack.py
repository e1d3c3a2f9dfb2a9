"""The ECS cluster, and what its hosts need to join it."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from inference_constructs.ecs import InferenceEcsCluster
from inference_constructs.observability import KeptLogGroup
from inference_constructs.operations import EcsControlledCluster
from inference_contracts.ecs_names import session_log_group


class EcsClusterStack(cdk.Stack):
    """A cluster without capacity.

    cluster_name: `metadata.name`, a plain string.
    vpc: VPC of hosts and tasks.
    load_balancer_security_group: Security group of the models' load balancer.
    model_ports: TCP ports on which models answer, 1 to 65535.
    encryption_key: KMS key of sessions of ECS Exec, and of their log.
    runs_commands: Whether ECS Exec may run commands in tasks.
    retention_days: Days for which sessions are kept.
    insights: Whether Container Insights records metrics of each task and container.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        vpc: ec2.IVpc,
        load_balancer_security_group: ec2.ISecurityGroup,
        model_ports: Iterable[int],
        insights: bool,
        encryption_key: kms.IKey,
        runs_commands: bool,
        retention_days: int,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env, termination_protection=True)
        self.cluster_name = cluster_name
        log = (
            KeptLogGroup(
                self,
                "Sessions",
                name=session_log_group(cluster_name),
                retention_days=retention_days,
                encryption_key=encryption_key,
            )
            if runs_commands
            else None
        )
        cluster = InferenceEcsCluster(
            self,
            "Cluster",
            cluster_name=cluster_name,
            vpc=vpc,
            load_balancer_security_group=load_balancer_security_group,
            model_ports=model_ports,
            insights=insights,
            session_log=logs.LogGroup.from_log_group_name(self, "SessionLog", session_log_group(cluster_name))
            if log
            else None,
            session_key=encryption_key if log else None,
        )
        if log:
            # ECS demands that the log group exists.
            cluster.node.add_dependency(log)
        #: Security group of hosts and tasks.
        self.members = cluster.members
        cdk.CfnOutput(self, "ClusterName", value=cluster.cluster_name)

    def controlled(self, _: cdk.Stack) -> EcsControlledCluster:
        """Return the cluster as controllers in another stack reach it."""
        return EcsControlledCluster(self.cluster_name)
