"""The Amazon ECS cluster of a platform and the security group of everything that runs on it."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct


class InferenceEcsCluster(ecs.Cluster):
    """A cluster, and the security group of its hosts and tasks.

    Workers take free ports at their start and tell each other over the discovery store, so members of the
    security group may reach each other on every TCP port. From outside, only the models' load balancer
    reaches the ports on which models answer.

    Parameters
    ----------
    cluster_name
        A plain string without CDK tokens, because keys of IAM conditions cannot contain references.
    vpc
        VPC of hosts and tasks.
    load_balancer_security_group
        Security group of the models' load balancer.
    model_ports
        TCP ports on which models answer, 1 to 65535.
    insights
        Whether Container Insights records metrics of each task and container. CloudWatch charges for them.
    session_log, session_key
        Log group that records sessions of ECS Exec, and the KMS key of these sessions. None if tasks run no
        commands.
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
        session_log: logs.ILogGroup | None = None,
        session_key: kms.IKey | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            cluster_name=cluster_name,
            container_insights_v2=ecs.ContainerInsights.ENHANCED
            if insights
            else ecs.ContainerInsights.ENABLED,
            execute_command_configuration=ecs.ExecuteCommandConfiguration(
                kms_key=session_key,
                log_configuration=ecs.ExecuteCommandLogConfiguration(
                    cloud_watch_encryption_enabled=True, cloud_watch_log_group=session_log
                ),
                logging=ecs.ExecuteCommandLogging.OVERRIDE,
            )
            if session_log
            else None,
            vpc=vpc,
        )
        #: Security group of hosts and tasks.
        self.members = ec2.SecurityGroup(
            self,
            "Members",
            vpc=vpc,
            # As on EKS: images, weights and the addresses that callers send may be on any host.
            allow_all_outbound=True,
            description="Hosts and tasks",
        )
        self.members.add_ingress_rule(self.members, ec2.Port.all_tcp(), "Hosts and tasks, from each other")
        self._admit(load_balancer_security_group, model_ports)

    def _admit(self, load_balancer: ec2.ISecurityGroup, ports: Iterable[int]) -> None:
        """Let the models' load balancer reach frontends."""
        for port in sorted(set(ports)):
            ec2.CfnSecurityGroupIngress(
                self,
                f"ModelsIngress{port}",
                description="Models, from their load balancer",
                from_port=port,
                to_port=port,
                group_id=self.members.security_group_id,
                ip_protocol="tcp",
                source_security_group_id=load_balancer.security_group_id,
            )
            ec2.CfnSecurityGroupEgress(
                self,
                f"ModelsEgress{port}",
                description="Models, to their frontends",
                from_port=port,
                to_port=port,
                group_id=load_balancer.security_group_id,
                ip_protocol="tcp",
                destination_security_group_id=self.members.security_group_id,
            )
