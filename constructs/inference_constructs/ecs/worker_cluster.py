"""The Fargate cluster of batch workers, and the network access of its tasks."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from inference_constructs.network.gateway import Gateway


class WorkerCluster(ecs.Cluster):
    """A Fargate cluster. Its tasks can reach AWS and the models, and accept no connections.

    Parameters
    ----------
    vpc
        VPC whose private subnets hold the tasks.
    gateway
        The models' load balancer.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        gateway: Gateway,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            vpc=vpc,
            container_insights_v2=ecs.ContainerInsights.ENABLED,
            enable_fargate_capacity_providers=True,
        )
        self.security_group = ec2.SecurityGroup(
            self,
            "Tasks",
            vpc=vpc,
            allow_all_outbound=False,
            description="Batch workers, to AWS and to the models",
        )
        self.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS")
        self.security_group.add_egress_rule(
            ec2.Peer.security_group_id(gateway.security_group_id), ec2.Port.tcp(gateway.port), "Models"
        )
        self.subnets = ec2.SubnetSelection(subnets=vpc.private_subnets)
