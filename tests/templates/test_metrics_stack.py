"""The stack of metrics on ECS, for a blueprint with elastic workers and a pool of an Auto Scaling group."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from botocore.session import Session
from botocore.validate import ParamValidator

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.metrics_task import gpu_metrics_task
from inference_blueprints.render.ecs.scaling_policies import published_roles
from inference_blueprints.render.ecs.tasks import TaskReferences, to_register
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Observability
from inference_constructs.network.model_load_balancer import Gateway
from inference_contracts import scale_metrics
from inference_contracts.scale_metrics import read_roles
from inference_contracts.trace_names import traces_endpoint_on_ecs
from stacks.ecs.metrics_stack import EcsMetricsStack

BLUEPRINT = load_blueprint("elastic-g6e").blueprint
PLAN = build_plan(BLUEPRINT)


@pytest.fixture(scope="module")
def template() -> Template:
    return _template(Observability())


def _template(observability: Observability) -> Template:
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
        spec=BLUEPRINT.spec,
        measured_pools=["l40s"],
        certificate_arns={},
        canary_keys=None,
        observability=observability,
        gateway=Gateway(vpc.vpc_id, "listener", "chat.internal", "http", "sg-1"),
        encryption_key=kms.Key(network, "Key"),
        env=env,
    )
    return Template.from_stack(stack)


def _service(template: Template, name: str) -> dict[str, Any]:
    [found] = template.find_resources("AWS::ECS::Service", {"Properties": {"ServiceName": name}}).values()
    properties: dict[str, Any] = found["Properties"]
    return properties


def _definition(template: Template, family: str) -> dict[str, Any]:
    wanted = {"Properties": {"Family": family}}
    [found] = template.find_resources("AWS::ECS::TaskDefinition", wanted).values()
    properties: dict[str, Any] = found["Properties"]
    return properties


def _actions(template: Template) -> set[str]:
    return {
        action
        for role in template.find_resources("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def test_one_private_task_that_a_deployment_replaces_first(template: Template) -> None:
    properties = _service(template, "metrics")
    assert properties["DesiredCount"] == 1
    deployment = properties["DeploymentConfiguration"]
    assert (deployment["MinimumHealthyPercent"], deployment["MaximumPercent"]) == (100, 200)
    assert properties["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"] == "DISABLED"
    # Its targets must not list the task itself: it has no tag of a release.
    assert [each["Key"] for each in properties["Tags"]] == ["inference-blueprints/platform"]


def test_the_publisher_knows_the_roles_of_the_plan(template: Template) -> None:
    definitions = _definition(template, "chat-metrics")["ContainerDefinitions"]
    [targets] = [each for each in definitions if each["Name"] == "targets"]
    environment = {each["Name"]: each["Value"] for each in targets["Environment"]}
    assert read_roles(environment[scale_metrics.ROLES]) == published_roles(PLAN)
    assert environment[scale_metrics.CLUSTER] == "chat"


def test_it_reads_one_cluster_and_changes_nothing(template: Template) -> None:
    assert _actions(template) == {
        *("ecs:ListServices", "ecs:ListTasks", "ecs:DescribeContainerInstances", "ecs:DescribeServices"),
        *("ecs:DescribeTasks", "ec2:DescribeInstances", "cloudwatch:PutMetricData"),
        *("logs:CreateLogStream", "logs:PutLogEvents"),
    }


def test_tasks_find_the_agent_by_name_and_it_may_send_their_traces() -> None:
    template = _template(Observability.model_validate({"traces": {}}))
    [(namespace, zone)] = template.find_resources("AWS::ServiceDiscovery::PrivateDnsNamespace").items()
    [(name_id, name)] = template.find_resources("AWS::ServiceDiscovery::Service").items()
    assert name["Properties"]["NamespaceId"] == {"Fn::GetAtt": [namespace, "Id"]}
    assert name["Properties"]["DnsConfig"]["DnsRecords"] == [{"TTL": 5, "Type": "A"}]
    host = f"{name['Properties']['Name']}.{zone['Properties']['Name']}"
    assert urlsplit(traces_endpoint_on_ecs("chat")).hostname == host
    assert _service(template, "metrics")["ServiceRegistries"] == [
        {"RegistryArn": {"Fn::GetAtt": [name_id, "Arn"]}}
    ]
    assert _actions(template) >= {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}


def test_without_traces_the_task_has_no_name(template: Template) -> None:
    template.resource_count_is("AWS::ServiceDiscovery::Service", 0)
    assert "ServiceRegistries" not in _service(template, "metrics")


class TestGpuMetrics:
    def test_each_host_of_the_pool_has_one_exporter_that_prometheus_finds(self, template: Template) -> None:
        properties = _service(template, "gpu-metrics-l40s")
        assert (properties["SchedulingStrategy"], properties["LaunchType"]) == ("DAEMON", "EC2")
        assert "CapacityProviderStrategy" not in properties
        [constraint] = properties["PlacementConstraints"]
        assert constraint["Expression"] == "attribute:inference-blueprints.pool == l40s"
        # The keys that `task_targets.scrape_targets` reads.
        assert {
            each["Key"].removeprefix("inference-blueprints/"): each["Value"] for each in properties["Tags"]
        } == {
            "platform": "chat",
            "pool": "l40s",
            "metrics-job": "gpu",
            "metrics-port": "9400",
        }

    def test_it_sees_every_gpu_and_has_no_other_privilege(self, template: Template) -> None:
        definition = _definition(template, "chat-gpu-metrics")
        [container] = definition["ContainerDefinitions"]
        assert container["Environment"] == [{"Name": "NVIDIA_VISIBLE_DEVICES", "Value": "all"}]
        assert container["LinuxParameters"] == {
            "Capabilities": {"Drop": ["ALL"]},
            "InitProcessEnabled": False,
        }
        assert container["User"] == "1000:1000"
        assert "ResourceRequirements" not in container
        assert "TaskRoleArn" not in definition
        # On the bridge, a mapping without the host's port gets any free one, which nobody knows.
        assert definition["NetworkMode"] == "bridge"
        assert container["PortMappings"] == [{"ContainerPort": 9400, "HostPort": 9400, "Protocol": "tcp"}]

    def test_the_request_is_one_of_the_api(self) -> None:
        references = TaskReferences(
            region="us-west-2", task_role_arn=None, execution_role_arn="execution", discovery_secret=str
        )
        request = to_register(gpu_metrics_task("chat"), references)
        shape = Session().get_service_model("ecs").operation_model("RegisterTaskDefinition").input_shape
        report = ParamValidator().validate(request, shape)
        assert not report.has_errors(), report.generate_report()
