"""The security group that lets EFA interfaces reach each other."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct


class EfaSecurityGroup(ec2.CfnSecurityGroup):
    """A security group that allows all traffic from and to itself.

    EFA requires that both rules refer to the group. A rule for 0.0.0.0/0 is not sufficient
    (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html). The group must not have the
    cluster's tag, because load balancer controllers accept only one tagged group per node.

    Parameters
    ----------
    vpc_id
        VPC of the nodes.
    """

    def __init__(self, scope: Construct, construct_id: str, *, vpc_id: str) -> None:
        super().__init__(
            scope,
            construct_id,
            group_description="EFA between nodes",
            # Without a rule EC2 would add one that allows all outbound traffic. This rule allows none.
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    cidr_ip="255.255.255.255/32",
                    description="No traffic to others",
                    from_port=252,
                    ip_protocol="icmp",
                    to_port=86,
                )
            ],
            vpc_id=vpc_id,
        )
        group = self.attr_group_id
        ec2.CfnSecurityGroupIngress(
            self,
            "FromItself",
            description="EFA",
            group_id=group,
            ip_protocol="-1",
            source_security_group_id=group,
        )
        ec2.CfnSecurityGroupEgress(
            self,
            "ToItself",
            description="EFA",
            destination_security_group_id=group,
            group_id=group,
            ip_protocol="-1",
        )
