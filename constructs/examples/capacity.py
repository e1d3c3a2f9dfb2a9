"""Permissions of Karpenter, and a pool of nodes with GPUs that it starts."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from inference_catalog import instance_type
from inference_catalog.releases import shipped_releases
from inference_constructs.capacity import KarpenterIdentity, KarpenterPool, NodeProperties, PoolProperties
from inference_constructs.eks import KubectlAccess

app = cdk.App()
stack = cdk.Stack(app, "Capacity", env=cdk.Environment(account="111122223333", region="us-west-2"))

karpenter = KarpenterIdentity(stack, "Karpenter", cluster_name="search")
access = KubectlAccess(
    cluster_name="search",
    service_token="arn:aws:lambda:us-west-2:111122223333:function:kubectl",
    handler_role_arn="arn:aws:iam::111122223333:role/kubectl",
)
vpc = ec2.Vpc.from_vpc_attributes(
    stack,
    "Vpc",
    vpc_id="vpc-0123456789abcdef0",
    availability_zones=["us-west-2a", "us-west-2b"],
    private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
)
KarpenterPool(
    stack,
    "L40s",
    cluster=access.import_cluster(stack),
    pool=PoolProperties(
        name="l40s",
        instance_types=[instance_type("g6e.2xlarge"), instance_type("g6e.4xlarge")],
        image=shipped_releases().node_image("l40s", "1.35"),
        capacity_types=["spot", "on-demand"],
        max_nodes=8,
        disk_gib=200,
    ),
    nodes=NodeProperties(
        role_name=karpenter.node_role.ref,
        subnet_ids=[subnet.subnet_id for subnet in vpc.private_subnets],
        security_group_ids=["sg-0123456789abcdef0"],
    ),
)

app.synth()
