"""An ECS cluster whose hosts with GPUs Amazon ECS starts and keeps, and a service of vLLM on them."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from inference_catalog import instance_type
from inference_constructs.ecs import (
    HostProperties,
    InferenceEcsCluster,
    ManagedCapacity,
    ManagedHostRoles,
    ServiceNetwork,
    ServiceProperties,
    ServingService,
)

app = cdk.App()
stack = cdk.Stack(app, "Tasks", env=cdk.Environment(account="111122223333", region="us-west-2"))

vpc = ec2.Vpc(stack, "Vpc")
callers = ec2.SecurityGroup(stack, "Callers", vpc=vpc, allow_all_outbound=False)
cluster = InferenceEcsCluster(
    stack,
    "Cluster",
    cluster_name="search",
    vpc=vpc,
    load_balancer_security_group=callers,
    model_ports=[8000],
    insights=True,
)
subnets = [subnet.subnet_id for subnet in vpc.private_subnets]
members = [cluster.members.security_group_id]
pool = ManagedCapacity(
    stack,
    "L40s",
    provider_name="search-l40s",
    cluster_name=cluster.cluster_name,
    hosts=HostProperties(
        pool="l40s", instance_types=[instance_type("g6e.2xlarge")], disk_gib=200, min_hosts=0, max_hosts=8
    ),
    roles=ManagedHostRoles(stack, "HostRoles"),
    subnet_ids=subnets,
    security_group_ids=members,
    spot=False,
)
service = ServingService(
    stack,
    "Vllm",
    cluster_name=cluster.cluster_name,
    name="qwen3-8b",
    task={
        "family": "search-qwen3-8b",
        "requiresCompatibilities": ["MANAGED_INSTANCES"],
        "networkMode": "awsvpc",
        "cpu": "4096",
        "memory": "32768",
        "containerDefinitions": [
            {
                "name": "vllm",
                "image": "vllm/vllm-openai:v0.19.0",
                "command": ["Qwen/Qwen3-8B"],
                "essential": True,
                "portMappings": [{"containerPort": 8000}],
                "resourceRequirements": [{"type": "GPU", "value": "1"}],
            }
        ],
    },
    service=ServiceProperties(
        strategy=[{"capacityProvider": "search-l40s", "weight": 1}],
        desired_count=2,
        network=ServiceNetwork(subnets, members),
    ),
)
service.node.add_dependency(pool)

app.synth()
