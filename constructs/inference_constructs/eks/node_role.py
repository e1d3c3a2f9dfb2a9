"""The IAM role of nodes."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.findings import acknowledge_managed_policies, acknowledge_wildcards
from inference_constructs.policy_statements import SESSIONS


class NodeRole(iam.CfnRole):
    """The IAM role of a node, which may join the cluster, pull images and accept sessions.

    Pods, including those of the network plug-in, have their own permissions through Pod Identity
    (https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html).
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        prefix = f"arn:{cdk.Stack.of(scope).partition}:iam::aws:policy/"
        policies = [f"{prefix}AmazonEKSWorkerNodePolicy", f"{prefix}AmazonEC2ContainerRegistryPullOnly"]
        super().__init__(
            scope,
            construct_id,
            assume_role_policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "ec2.amazonaws.com"},
                        "Action": "sts:AssumeRole",
                    }
                ],
            },
            managed_policy_arns=policies,
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="Sessions",
                    policy_document={"Version": "2012-10-17", "Statement": [SESSIONS]},
                )
            ],
        )
        acknowledge_wildcards(self, [SESSIONS], "The actions of Session Manager's agent know no resources.")
        acknowledge_managed_policies(
            self, policies, "AWS maintains these two policies with a node's permissions for EKS and ECR."
        )
