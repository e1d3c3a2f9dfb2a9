"""An example of each row of the table of refusals: what is called before, and what AWS refuses then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ROLE = "arn:aws:iam::123456789012:role/any"
ANYTHING = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}


@dataclass(frozen=True)
class Call:
    """A call of an API."""

    service: str
    operation: str
    """Method of boto3's client."""
    parameters: Mapping[str, Any]
    before: tuple[Call, ...] = ()
    """What succeeds before it."""
    found: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    """Returns more parameters, from the client of the service."""


@dataclass(frozen=True)
class Resource:
    """A resource of a template."""

    kind: str
    properties: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    """Properties with which the stack was created. None if the creation is refused."""
    calls: tuple[Call, ...] = ()
    """What succeeds before it."""
    others: int = 0
    """Other resources of the stack with the same properties."""
    deleted: bool = False
    """Whether its deletion is what is refused."""


def policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def function(**properties: Any) -> Resource:
    code = {"ZipFile": "def handler(event, context): pass"}
    basic = {"Runtime": "python3.11", "Handler": "index.handler", "Role": ROLE, "Code": code}
    return Resource("AWS::Lambda::Function", {**basic, **properties})


GROUP_ARN = (
    "arn:aws:autoscaling:us-west-2:123456789012:autoScalingGroup:00000000-0000-0000-0000-000000000000:"
    "autoScalingGroupName/"
)


def hosts(name: str, count: int = 0) -> tuple[Call, ...]:
    """Calls that make an Auto Scaling group."""
    return (
        Call(
            "ec2",
            "create_launch_template",
            {"LaunchTemplateName": name, "LaunchTemplateData": {"InstanceType": "g6e.xlarge"}},
        ),
        Call(
            "autoscaling",
            "create_auto_scaling_group",
            {
                "AutoScalingGroupName": name,
                "MinSize": count,
                "MaxSize": 1,
                "AvailabilityZones": ["us-west-2a"],
                "LaunchTemplate": {"LaunchTemplateName": name, "Version": "$Latest"},
            },
        ),
    )


def provider(name: str, group: str = "") -> Call:
    """A call that makes a capacity provider of an Auto Scaling group."""
    arn = f"{GROUP_ARN}{group or name}"
    given = {"name": name, "autoScalingGroupProvider": {"autoScalingGroupArn": arn}}
    return Call("ecs", "create_capacity_provider", given)


def managed(cluster: str, name: str, **keys: Any) -> tuple[Call, ...]:
    """Calls that make a cluster with a capacity provider of Managed Instances."""
    network = {"subnets": ["subnet-1"]}
    template = {
        "ec2InstanceProfileArn": "arn:aws:iam::123456789012:instance-profile/hosts",
        "networkConfiguration": network,
        "instanceRequirements": {
            "vCpuCount": {"min": 1},
            "memoryMiB": {"min": 1},
            "allowedInstanceTypes": ["g6e.xlarge"],
        },
    }
    given = {"infrastructureRoleArn": ROLE, "instanceLaunchTemplate": template, **keys}
    tags = {"tags": [{"key": "cost/owner", "value": "search"}]} if keys else {}
    return (
        Call("ecs", "create_cluster", {"clusterName": cluster}),
        Call(
            "ecs",
            "create_capacity_provider",
            {"name": name, "cluster": cluster, "managedInstancesProvider": given, **tags},
        ),
    )


def associated(cluster: str, *providers: str) -> Call:
    given = {"capacityProviders": list(providers), "defaultCapacityProviderStrategy": []}
    return Call("ecs", "put_cluster_capacity_providers", {"cluster": cluster, **given})


def task(family: str, network: str = "host") -> Call:
    container = {"name": "main", "image": "registry.example/engine:1", "memory": 64, "essential": True}
    given = {"networkMode": network, "containerDefinitions": [container]}
    return Call("ecs", "register_task_definition", {"family": family, **given})


def service(cluster: str, provider: str, family: str, operation: str = "create_service", **keys: Any) -> Call:
    name = {"serviceName" if operation == "create_service" else "service": "engine"}
    strategy = {"capacityProviderStrategy": [{"capacityProvider": provider, "weight": 1}]}
    return Call("ecs", operation, {"cluster": cluster, **name, "taskDefinition": family, **strategy, **keys})


def first_host(group: str) -> Callable[[Any], Mapping[str, Any]]:
    def found(client: Any) -> Mapping[str, Any]:
        groups = client.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        return {"InstanceId": groups[0]["Instances"][0]["InstanceId"]}

    return found


def protection(group: str, *instances: str) -> Call:
    given = {"AutoScalingGroupName": group, "InstanceIds": list(instances), "ProtectedFromScaleIn": False}
    return Call("autoscaling", "set_instance_protection", given)


QUEUE = "http://127.0.0.1/123456789012/queue"
CLUSTER = Call("ecs", "create_cluster", {"clusterName": "try"})

#: Refusals that answer no call, or one about a task that runs, and the tests that make them.
LATER: Mapping[str, str] = {
    "EXECUTE_COMMAND_OFF": "tests/local/ecs/test_running_tasks.py",
    "NOT_INTERACTIVE": "tests/local/ecs/test_running_tasks.py",
    "NO_CAPACITY": "tests/local/ecs/test_running_tasks.py",
    "VCPU_LIMIT": "tests/local/ecs/test_running_tasks.py",
}

#: Those of ECS are sent to an emulator whose tasks run.
OF_ECS: Mapping[str, Call] = {
    "PROVIDER_EXISTS": Call(
        *("ecs", "create_capacity_provider"),
        provider("twice").parameters,
        (*hosts("twice"), provider("twice")),
    ),
    "PROVIDER_NAME_RESERVED": provider("ecs-hosts"),
    "GROUP_HAS_PROVIDER": Call(
        *("ecs", "create_capacity_provider"),
        provider("second", "shared").parameters,
        (*hosts("shared"), provider("first", "shared")),
    ),
    "PROVIDER_UNKNOWN": Call(
        "ecs",
        "put_cluster_capacity_providers",
        associated("unknown", "absent").parameters,
        (Call("ecs", "create_cluster", {"clusterName": "unknown"}),),
    ),
    "MANAGED_PROVIDER_ASSOCIATED": Call(
        "ecs",
        "put_cluster_capacity_providers",
        associated("listed", "listed").parameters,
        managed("listed", "listed"),
    ),
    "PROVIDER_IN_USE": Call(
        "ecs",
        "delete_capacity_provider",
        {"capacityProvider": "busy"},
        (*managed("busy", "busy"), task("busy"), service("busy", "busy", "busy", desiredCount=0)),
    ),
    "PROVIDER_ASSOCIATED": Call(
        "ecs",
        "delete_capacity_provider",
        {"capacityProvider": "kept"},
        (
            Call("ecs", "create_cluster", {"clusterName": "kept"}),
            *hosts("kept"),
            provider("kept"),
            associated("kept", "kept"),
        ),
    ),
    "PROVIDER_NOT_ASSOCIATED": Call(
        "ecs",
        "create_service",
        service("without", "FARGATE_SPOT", "without").parameters,
        (Call("ecs", "create_cluster", {"clusterName": "without"}), task("without")),
    ),
    "STRATEGY_NOT_FORCED": Call(
        "ecs",
        "update_service",
        service("changed", "FARGATE", "changed", "update_service").parameters,
        (
            *managed("changed", "changed"),
            associated("changed", "FARGATE"),
            task("changed"),
            service("changed", "changed", "changed", desiredCount=0),
        ),
    ),
    "INSTANCE_TAG_KEY": Call(
        "ecs",
        "create_service",
        service("tagged", "tagged", "tagged").parameters,
        (*managed("tagged", "tagged", propagateTags="CAPACITY_PROVIDER"), task("tagged")),
    ),
    "MANAGED_PROVIDERS_MIXED": Call(
        "ecs",
        "update_service",
        {
            "cluster": "mixed",
            "service": "engine",
            "forceNewDeployment": True,
            "capacityProviderStrategy": [{"capacityProvider": each} for each in ("mixed", "FARGATE")],
        },
        (
            *managed("mixed", "mixed"),
            associated("mixed", "FARGATE"),
            task("mixed"),
            service("mixed", "mixed", "mixed", desiredCount=0),
        ),
    ),
    "INSTANCE_NOT_IN_SERVICE": Call(
        "autoscaling",
        "set_instance_protection",
        {"AutoScalingGroupName": "leaving", "ProtectedFromScaleIn": False},
        (
            *hosts("leaving", 1),
            Call(
                "autoscaling",
                "terminate_instance_in_auto_scaling_group",
                {"ShouldDecrementDesiredCapacity": False},
                found=first_host("leaving"),
            ),
        ),
        found=lambda client: {"InstanceIds": [first_host("leaving")(client)["InstanceId"]]},
    ),
    "NETWORK_NOT_VALID": Call(
        "ecs",
        "create_service",
        service(
            *("network", "network", "network"),
            networkConfiguration={"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
        ).parameters,
        (*managed("network", "network"), task("network")),
    ),
}

EXAMPLES: Mapping[str, Call | Resource] = {
    "GROUP_UNKNOWN": protection("absent", "i-0"),
    "INSTANCES_AT_ONCE": Call(
        "autoscaling",
        "set_instance_protection",
        protection("many", *["i-0"] * 51).parameters,
        hosts("many"),
    ),
    "INSTANCE_NOT_IN_GROUP": Call(
        "autoscaling", "set_instance_protection", protection("other", "i-0").parameters, hosts("other")
    ),
    "POD_IDENTITY_EXISTS": Resource(
        "AWS::EKS::PodIdentityAssociation",
        {"ClusterName": "c", "Namespace": "n", "ServiceAccount": "doubled", "RoleArn": ROLE},
        others=1,
    ),
    "EVENT_INVOKE_LIMIT": Call(
        "lambda",
        "put_function_event_invoke_config",
        {"FunctionName": "f", "MaximumRetryAttempts": 3},
    ),
    "LOG_GROUP_EXISTS": Resource(
        "AWS::Logs::LogGroup",
        {"LogGroupName": "/there/already"},
        calls=(Call("logs", "create_log_group", {"logGroupName": "/there/already"}),),
    ),
    "NAME_EXISTS": Resource(
        "AWS::EKS::AccessEntry",
        {"ClusterName": "c", "PrincipalArn": ROLE, "Type": "STANDARD"},
        others=1,
    ),
    "CUSTOM_NAME_REPLACED": Resource(
        "AWS::MSK::Topic",
        {"ClusterArn": ROLE, "TopicName": "kept", "PartitionCount": 2, "ReplicationFactor": 3},
        before={"ClusterArn": ROLE, "TopicName": "kept", "PartitionCount": 2, "ReplicationFactor": 2},
    ),
    "FEWER_PARTITIONS": Resource(
        "AWS::MSK::Topic",
        {"ClusterArn": ROLE, "TopicName": "fewer", "PartitionCount": 2, "ReplicationFactor": 2},
        before={"ClusterArn": ROLE, "TopicName": "fewer", "PartitionCount": 4, "ReplicationFactor": 2},
    ),
    "GROUP_PROTECTED": Resource(
        "AWS::AutoScaling::AutoScalingGroup",
        {
            "AutoScalingGroupName": "protected",
            "MinSize": "1",
            "MaxSize": "1",
            "NewInstancesProtectedFromScaleIn": True,
            "AvailabilityZones": ["us-west-2a"],
        },
        deleted=True,
    ),
    "BEYOND_MODEL": Call("iam", "create_role", {"RoleName": "r" * 65, "AssumeRolePolicyDocument": policy()}),
    "BEYOND_SCHEMA": Resource("AWS::SQS::Queue", {"QueueName": "strange", "Colour": "red"}),
    "EVENT_TARGETS": Call(
        "events",
        "put_targets",
        {"Rule": "rule", "Targets": [{"Id": f"target{index}", "Arn": ROLE} for index in range(6)]},
    ),
    "SID_FORM": Call(
        "iam",
        "create_policy",
        {"PolicyName": "sid", "PolicyDocument": policy({**ANYTHING, "Sid": "read-objects"})},
    ),
    "SID_DOUBLED": Call(
        "iam",
        "create_policy",
        {"PolicyName": "twice", "PolicyDocument": policy(*[{**ANYTHING, "Sid": "Read"}] * 2)},
    ),
    "MANAGED_POLICY_SIZE": Call(
        "iam",
        "create_policy",
        {"PolicyName": "large", "PolicyDocument": policy({**ANYTHING, "Resource": "x" * 6144})},
    ),
    "VARIABLES_SIZE": function(Environment={"Variables": {"NAME": "x" * 4096}}),
    "VARIABLES_RESERVED": function(Environment={"Variables": {"AWS_REGION": "us-west-2"}}),
    "LAYERS": Call(
        "lambda",
        "update_function_configuration",
        {
            "FunctionName": "f",
            "Layers": [f"arn:aws:lambda:us-west-2:123456789012:layer:l{n}:1" for n in range(6)],
        },
    ),
    "FILTER_DEFAULT": Call(
        "logs",
        "put_metric_filter",
        {
            "logGroupName": "group",
            "filterName": "filter",
            "filterPattern": "{$.a = *}",
            "metricTransformations": [
                {
                    "metricName": "m",
                    "metricNamespace": "n",
                    "metricValue": "1",
                    "defaultValue": 0,
                    "dimensions": {"A": "$.a"},
                }
            ],
        },
    ),
    "FILTER_DIMENSIONS": Call(
        "logs",
        "put_metric_filter",
        {
            "logGroupName": "group",
            "filterName": "filter",
            "filterPattern": "{$.a = *}",
            "metricTransformations": [
                {
                    "metricName": "m",
                    "metricNamespace": "n",
                    "metricValue": "1",
                    "dimensions": {f"A{index}": "$.a" for index in range(4)},
                }
            ],
        },
    ),
    "TRANSACTION_TWICE": Call(
        "dynamodb",
        "transact_write_items",
        {"TransactItems": [{"Delete": {"TableName": "table", "Key": {"k": {"S": "same"}}}}] * 2},
    ),
    "INSTANCE_UNKNOWN": Call("ec2", "reboot_instances", {"InstanceIds": ["i-0a1b2c3d4e5f60718"]}),
    "ITEM_TOO_LARGE": Call(
        "dynamodb",
        "put_item",
        {"TableName": "items", "Item": {"k": {"S": "1"}, "text": {"S": "x" * 409_600}}},
        (
            Call(
                "dynamodb",
                "create_table",
                {
                    "TableName": "items",
                    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            ),
        ),
    ),
    "EXPRESSION_SIZE": Call(
        "dynamodb",
        "update_item",
        {"TableName": "table", "Key": {"k": {"S": "1"}}, "UpdateExpression": f"REMOVE {'x' * 4096}"},
    ),
    "METRIC_QUERIES": Call(
        "cloudwatch",
        "get_metric_data",
        {
            "StartTime": "2026-01-01T00:00:00Z",
            "EndTime": "2026-01-02T00:00:00Z",
            "MetricDataQueries": [{"Id": f"q{index}", "Expression": "1"} for index in range(501)],
        },
    ),
    "METRIC_POINTS": Call(
        "cloudwatch",
        "get_metric_statistics",
        {
            "Namespace": "n",
            "MetricName": "m",
            "StartTime": "2026-01-01T00:00:00Z",
            "EndTime": "2026-01-03T00:00:00Z",
            "Period": 60,
            "Statistics": ["Sum"],
        },
    ),
    "ALARM_PERIODS": Resource(
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "n",
            "MetricName": "m",
            "Statistic": "Sum",
            "Period": 300,
            "EvaluationPeriods": 289,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanThreshold",
        },
    ),
    "EVENTS_SIZE": Call(
        "events",
        "put_events",
        {"Entries": [{"Source": "s", "DetailType": "d", "Detail": json.dumps({"text": "x" * 1_048_576})}]},
    ),
    "GROUP_DESCRIPTION": Call(
        "ec2", "create_security_group", {"GroupName": "hosts", "Description": "the model's hosts"}
    ),
    "RULE_DESCRIPTION": Resource(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "hosts",
            "SecurityGroupEgress": [
                {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0", "Description": "what the hosts' tasks need"}
            ],
        },
    ),
    "BALANCER_NAME": Resource(
        "AWS::ElasticLoadBalancingV2::LoadBalancer", {"Name": "n" * 33, "Subnets": ["subnet-1", "subnet-2"]}
    ),
    "HEALTH_TIMEOUT": Resource(
        "AWS::ElasticLoadBalancingV2::TargetGroup",
        {
            "Protocol": "HTTP",
            "Port": 80,
            "VpcId": "vpc-1",
            "HealthCheckTimeoutSeconds": 10,
            "HealthCheckIntervalSeconds": 10,
        },
    ),
    "SERVICES_AT_ONCE": Call(
        "ecs", "describe_services", {"cluster": "try", "services": ["s"] * 11}, (CLUSTER,)
    ),
    "TASKS_AT_ONCE": Call("ecs", "describe_tasks", {"cluster": "try", "tasks": ["t"] * 101}, (CLUSTER,)),
    "HOSTS_AT_ONCE": Call(
        "ecs",
        "describe_container_instances",
        {"cluster": "try", "containerInstances": ["i"] * 101},
        (CLUSTER,),
    ),
    "STATES_AT_ONCE": Call(
        "ecs",
        "update_container_instances_state",
        {"cluster": "try", "containerInstances": ["i"] * 11, "status": "DRAINING"},
        (CLUSTER,),
    ),
    "ATTRIBUTES_AT_ONCE": Call(
        "ecs", "put_attributes", {"cluster": "try", "attributes": [{"name": "a"}] * 11}, (CLUSTER,)
    ),
    "DEFINITIONS_AT_ONCE": Call("ecs", "delete_task_definitions", {"taskDefinitions": ["f:1"] * 11}),
    "MESSAGES_AT_ONCE": Call("sqs", "receive_message", {"QueueUrl": QUEUE, "MaxNumberOfMessages": 11}),
    "RECEIVE_WAIT": Call("sqs", "receive_message", {"QueueUrl": QUEUE, "WaitTimeSeconds": 21}),
    "VISIBILITY": Call(
        "sqs",
        "change_message_visibility",
        {"QueueUrl": QUEUE, "ReceiptHandle": "r", "VisibilityTimeout": 43_201},
    ),
    "CACHE_USER": Resource(
        "AWS::ElastiCache::User",
        {"UserId": "jobs", "UserName": "writer", "Engine": "valkey", "AuthenticationMode": {"Type": "iam"}},
    ),
    "TEMPLATE_BODY": Call(
        "cloudformation", "create_stack", {"StackName": "large", "TemplateBody": " " * 51_201}
    ),
    "NODE_LABEL": Resource(
        "AWS::EKS::Nodegroup",
        {
            "ClusterName": "c",
            "NodeRole": ROLE,
            "Subnets": ["subnet-1"],
            "Labels": {"node.kubernetes.io/pool": "a"},
        },
    ),
    "ENTRY_TYPE": Resource(
        "AWS::EKS::AccessEntry",
        {"ClusterName": "c", "PrincipalArn": ROLE, "Type": "EC2_LINUX", "KubernetesGroups": ["nodes"]},
    ),
}
