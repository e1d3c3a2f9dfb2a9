"""Permissions with which Lambda connects a function to a VPC."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_iam as iam

from inference_constructs.findings import acknowledge_wildcards

#: The resources are not known at deployment
#: (https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html).
INTERFACE_ACTIONS: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)


def let_connect(role: iam.Role) -> None:
    """Let Lambda connect functions to a VPC with their role.

    role: Role of the functions.
    """
    connects = iam.PolicyStatement(actions=list(INTERFACE_ACTIONS), resources=["*"])
    role.add_to_policy(connects)
    acknowledge_wildcards(
        role, [connects.to_statement_json()], "Lambda creates and names the network interfaces."
    )
