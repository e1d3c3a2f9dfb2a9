"""The stack of metrics on ECS, for a blueprint with elastic workers."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from inference_blueprints.contracts import scale_metrics
from inference_blueprints.contracts.scale_metrics import read_roles
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.targets.ecs.scaling_policies import published_roles
from stacks.ecs.metrics_stack import EcsMetricsStack

BLUEPRINT = load_blueprint("elastic-g6e").blueprint
PLAN = build_plan(BLUEPRINT)


@pytest.fixture(scope="module")
def template() -> Template:
    app = cdk.App()
    env = cdk.Environment(account="111122223333", region="us-west-2")
    network = cdk.Stack(app, "Network", env=env)
    vpc = ec2.Vpc(network, "Vpc")
    stack = EcsMetricsStack(
        app,
        "Metrics",
        cluster_name="chat",
        vpc=vpc,
        members=ec2.SecurityGroup(network, "Members", vpc=vpc),
        plan=PLAN,
        models=BLUEPRINT.spec.models,
        pools=BLUEPRINT.spec.pools,
        gpu_health=None,
        gpu_metrics=False,
        retention_days=30,
        encryption_key=kms.Key(network, "Key"),
        env=env,
    )
    return Template.from_stack(stack)


def test_one_private_task_that_a_deployment_replaces_first(template: Template) -> None:
    [service] = template.find_resources("AWS::ECS::Service").values()
    properties = service["Properties"]
    assert properties["DesiredCount"] == 1
    deployment = properties["DeploymentConfiguration"]
    assert (deployment["MinimumHealthyPercent"], deployment["MaximumPercent"]) == (100, 200)
    assert properties["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"] == "DISABLED"
    # Its targets must not list the task itself: it has no tag of a release.
    assert [each["Key"] for each in properties["Tags"]] == ["inference-blueprints/platform"]


def test_the_publisher_knows_the_roles_of_the_plan(template: Template) -> None:
    [task] = template.find_resources("AWS::ECS::TaskDefinition").values()
    [targets] = [each for each in task["Properties"]["ContainerDefinitions"] if each["Name"] == "targets"]
    environment = {each["Name"]: each["Value"] for each in targets["Environment"]}
    assert read_roles(environment[scale_metrics.ROLES]) == published_roles(PLAN)
    assert environment[scale_metrics.CLUSTER] == "chat"


def test_it_reads_one_cluster_and_changes_nothing(template: Template) -> None:
    actions = {
        action
        for role in template.find_resources("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    assert actions == {
        *("ecs:ListServices", "ecs:ListTasks", "ecs:DescribeContainerInstances", "ecs:DescribeServices"),
        *("ecs:DescribeTasks", "ec2:DescribeInstances", "cloudwatch:PutMetricData"),
        *("logs:CreateLogStream", "logs:PutLogEvents"),
    }
