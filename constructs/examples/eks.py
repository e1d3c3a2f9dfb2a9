"""An EKS cluster with its add-ons and nodes for controllers, and pods that may read a bucket."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from inference_constructs.eks import (
    AFTER_NODES,
    BEFORE_NODES,
    ClusterAddOns,
    InferenceCluster,
    PodIdentity,
    SystemNodegroup,
)

app = cdk.App()
stack = cdk.Stack(app, "Cluster", env=cdk.Environment(account="111122223333", region="us-west-2"))

vpc = ec2.Vpc(stack, "Vpc")
cluster = InferenceCluster(
    stack,
    "Cluster",
    cluster_name="search",
    version="1.35",
    vpc=vpc,
    secrets_key=kms.Key(stack, "Key", enable_key_rotation=True),
)
daemons = ClusterAddOns(stack, "Daemons", cluster_name="search", add_ons=BEFORE_NODES, after=[cluster])
nodes = SystemNodegroup(
    stack, "Nodes", cluster_name="search", kubernetes_version="1.35", subnets=vpc.private_subnets
)
nodes.node.add_dependency(daemons)
ClusterAddOns(stack, "Deployments", cluster_name="search", add_ons=AFTER_NODES, after=[nodes])

pods = PodIdentity(stack, "Pods", cluster_name="search", namespace="models", service_accounts=["worker"])
pods.node.add_dependency(cluster)
s3.Bucket(stack, "Prompts", enforce_ssl=True).grant_read(pods)

app.synth()
