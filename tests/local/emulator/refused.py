"""An example of each row of the table of refusals: what is called before, and what AWS refuses then."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

ROLE = "arn:aws:iam::123456789012:role/any"
#: The end of a zip file without files.
EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
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
    "DATA_LIMIT": "tests/local/emulator/test_distributed_maps.py",
    "CACHE_ENGINE": "tests/unit/local/emulator/test_refusals.py",
    "FLINK_CODE_SIZE": "tests/unit/local/emulator/test_refusals.py",
    "STACK_CHANGES": "tests/unit/local/emulator/test_changing_stacks.py",
    "ENDPOINT_ZONES": "tests/unit/local/emulator/test_refusals.py",
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
    "SERVICE_UNKNOWN": Call(
        *("ecs", "update_service"),
        {"cluster": "empty", "service": "engine", "desiredCount": 1},
        (Call("ecs", "create_cluster", {"clusterName": "empty"}),),
    ),
    "SERVICE_NOT_ACTIVE": Call(
        *("ecs", "update_service"),
        {"cluster": "deleted", "service": "engine", "desiredCount": 1},
        (
            *managed("deleted", "deleted"),
            task("deleted"),
            service("deleted", "deleted", "deleted", desiredCount=0),
            Call("ecs", "delete_service", {"cluster": "deleted", "service": "engine"}),
        ),
    ),
    "NEW_TARGET_WITHOUT_RANGE": Call(
        *("application-autoscaling", "register_scalable_target"),
        {
            "ServiceNamespace": "ecs",
            "ScalableDimension": "ecs:service:DesiredCount",
            "ResourceId": "service/try/engine",
            "MinCapacity": 1,
        },
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

TABLE = {
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
WEST = {"CreateBucketConfiguration": {"LocationConstraint": "us-west-2"}}


def bucket(name: str) -> Call:
    return Call("s3", "create_bucket", {"Bucket": name, **WEST})


#: Versions of secrets.
ONE, TWO = "1" * 32, "2" * 32
SECRET_VALUE: Mapping[str, Any] = {"SecretId": "valued", "ClientRequestToken": ONE}


def secret(name: str) -> Call:
    return Call("secretsmanager", "create_secret", {"Name": name, "SecretString": "x"})


def rotating(name: str) -> Call:
    """Call that makes a function, which fails."""
    return Call(
        "lambda",
        "create_function",
        {
            "FunctionName": name,
            "Runtime": "python3.11",
            "Handler": "index.handler",
            "Role": ROLE,
            "Code": {"ZipFile": EMPTY_ZIP},
        },
    )


def rotated(name: str, function: str, version: str) -> Call:
    arn = f"arn:aws:lambda:us-west-2:123456789012:function:{function}"
    parameters = {"SecretId": name, "RotationLambdaARN": arn, "ClientRequestToken": version}
    return Call("secretsmanager", "rotate_secret", parameters)


def rotation_of(name: str) -> tuple[Call, ...]:
    """Calls that start a rotation, which never ends."""
    permission = {
        "FunctionName": name,
        "StatementId": "rotation",
        "Action": "lambda:InvokeFunction",
        "Principal": "secretsmanager.amazonaws.com",
    }
    allowed = Call("lambda", "add_permission", permission)
    return (secret(name), rotating(name), allowed, rotated(name, name, ONE))


def stack_call(operation: str, name: str, **keys: Any) -> Call:
    template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    return Call("cloudformation", operation, {"StackName": name, "TemplateBody": template, **keys})


def upload_of(client: Any) -> Mapping[str, Any]:
    return {"UploadId": client.list_multipart_uploads(Bucket="parts")["Uploads"][0]["UploadId"]}


def parts_of(client: Any) -> Mapping[str, Any]:
    found = upload_of(client)
    parts = client.list_parts(Bucket="parts", Key="k", **found)["Parts"]
    listed = [{"PartNumber": each["PartNumber"], "ETag": each["ETag"]} for each in parts]
    return {**found, "MultipartUpload": {"Parts": listed}}


def machine(name: str) -> Call:
    wait = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 1, "End": True}}}
    return Call(
        "stepfunctions",
        "create_state_machine",
        {"name": name, "roleArn": ROLE, "definition": json.dumps(wait)},
    )


def execution(text: str) -> Call:
    arn = "arn:aws:states:us-west-2:123456789012:stateMachine:twice"
    given = {"stateMachineArn": arn, "name": "twice", "input": json.dumps({"text": text})}
    return Call("stepfunctions", "start_execution", given)


def role(name: str) -> Call:
    trust = policy({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"})
    return Call("iam", "create_role", {"RoleName": name, "AssumeRolePolicyDocument": trust})


def complete(name: str) -> Callable[[Any], Mapping[str, Any]]:
    """Wait until a stack is made."""

    def found(client: Any) -> Mapping[str, Any]:
        client.get_waiter("stack_create_complete").wait(
            StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )
        return {}

    return found


def record(client: Any) -> Mapping[str, Any]:
    [zone] = client.list_hosted_zones_by_name(DNSName="records.example")["HostedZones"][:1]
    values = {"Name": "a.records.example", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
    changes = [{"Action": "CREATE", "ResourceRecordSet": values}]
    return {"HostedZoneId": zone["Id"], "ChangeBatch": {"Changes": changes}}


def after(call: Call, *before: Call) -> Call:
    return replace(call, before=before)


def twice(call: Call, *before: Call) -> Call:
    """Return a call that is refused because it was made before."""
    return replace(call, before=(*before, call))


SCHEDULE: Mapping[str, Any] = {
    "Name": "nightly",
    "ScheduleExpression": "rate(1 day)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": "arn:aws:sqs:us-west-2:123456789012:queue", "RoleArn": ROLE},
}


def containers(*found: Mapping[str, Any], **keys: Any) -> Call:
    """A call that registers a task definition of containers."""
    basic = {"image": "registry.example/engine:1", "memory": 64}
    given = [{"name": "main", **basic, **each} for each in found]
    return Call(
        "ecs", "register_task_definition", {"family": "refused", "containerDefinitions": given, **keys}
    )


def large_policy(size: int) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": ROLE}}
    condition = {"Condition": {"StringEquals": {"sts:ExternalId": "x" * size}}}
    return {"Version": "2012-10-17", "Statement": [{**statement, **condition}]}


def lifecycle(*rules: Mapping[str, Any]) -> Resource:
    return Resource("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": list(rules)}})


EKS_CLUSTER = {
    "Name": "refused",
    "RoleArn": ROLE,
    "Version": "1.34",
    "ResourcesVpcConfig": {"SubnetIds": ["subnet-1", "subnet-2"]},
    "AccessConfig": {"AuthenticationMode": "API"},
}
FARGATE = {"networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512"}
BROKERS = {
    "ClusterName": "uneven",
    "KafkaVersion": "3.9.x",
    "NumberOfBrokerNodes": 4,
    "BrokerNodeGroupInfo": {"ClientSubnets": ["a", "b", "c"], "InstanceType": "kafka.m7g.large"},
}


def bucket_policy(action: str, resource: str) -> Call:
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": action,
        "Resource": f"arn:aws:s3:::{resource}",
    }
    return Call("s3", "put_bucket_policy", {"Bucket": "mine", "Policy": policy(statement)})


def pattern(**fields: Any) -> Call:
    return Call("events", "put_rule", {"Name": "r", "EventPattern": json.dumps(fields)})


def alarm(**properties: Any) -> Resource:
    basic = {"EvaluationPeriods": 2, "Threshold": 1, "ComparisonOperator": "GreaterThanThreshold"}
    return Resource("AWS::CloudWatch::Alarm", {**basic, **properties})


def query(name: str) -> dict[str, Any]:
    stat = {"Metric": {"Namespace": "n", "MetricName": name}, "Period": 60, "Stat": "Sum"}
    return {"Id": name, "MetricStat": stat}


def indexed(*names: str) -> dict[str, Any]:
    """Properties of a table with indexes."""
    keys = [{"AttributeName": "k", "KeyType": "HASH"}]
    indexes = [
        {"IndexName": each, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}} for each in names
    ]
    return {"TableName": "indexed", **TABLE, **({"GlobalSecondaryIndexes": indexes} if indexes else {})}


RULE = {"Id": "old", "Status": "Enabled", "ExpirationInDays": 90}
NODES = {"clusterName": "c", "nodegroupName": "n", "subnets": ["subnet-1"], "nodeRole": ROLE}

NETWORK = (
    Call("ec2", "create_vpc", {"CidrBlock": "10.9.0.0/16"}),
    Call(
        "ec2",
        "create_subnet",
        {"CidrBlock": "10.9.0.0/24"},
        found=lambda client: {"VpcId": first(client, "vpc", "10.9.0.0/16")},
    ),
    Call(
        "ec2",
        "create_security_group",
        {"GroupName": "used", "Description": "used"},
        found=lambda client: {"VpcId": first(client, "vpc", "10.9.0.0/16")},
    ),
    Call(
        "ec2",
        "create_network_interface",
        {},
        found=lambda client: {
            "SubnetId": first(client, "subnet", "10.9.0.0/24"),
            "Groups": [group_of(client)],
        },
    ),
)
INSTANCE = Call(
    "ec2",
    "run_instances",
    {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1, "InstanceType": "g6e.xlarge"},
)


def first(client: Any, kind: str, block: str) -> str:
    """Return the VPC or the subnet with a range of addresses."""
    described = {"vpc": client.describe_vpcs, "subnet": client.describe_subnets}[kind]()
    name = kind.title()
    return str(next(e[f"{name}Id"] for e in described[f"{name}s"] if e["CidrBlock"] == block))


def group_of(client: Any) -> str:
    groups = client.describe_security_groups()["SecurityGroups"]
    return str(next(each["GroupId"] for each in groups if each["GroupName"] == "used"))


def instance_of(client: Any) -> dict[str, str]:
    instances = client.describe_instances()["Reservations"][-1]["Instances"]
    return {"InstanceId": instances[0]["InstanceId"]}


def volume_of(client: Any) -> dict[str, str]:
    return {"VolumeId": client.describe_volumes()["Volumes"][-1]["VolumeId"]}


def interface_of(client: Any) -> dict[str, str]:
    found = client.describe_network_interfaces()["NetworkInterfaces"]
    return {"NetworkInterfaceId": found[-1]["NetworkInterfaceId"]}


EXAMPLES: Mapping[str, Call | Resource] = {
    "GROUP_USED": Call(
        "ec2",
        "delete_security_group",
        {},
        NETWORK,
        found=lambda client: {"GroupId": group_of(client)},
    ),
    "INTERFACE_USED": Call(
        "ec2",
        "delete_network_interface",
        {},
        (
            INSTANCE,
            Call(
                "ec2",
                "create_network_interface",
                {},
                found=lambda client: {"SubnetId": client.describe_subnets()["Subnets"][0]["SubnetId"]},
            ),
            Call(
                "ec2",
                "attach_network_interface",
                {"DeviceIndex": 1},
                found=lambda client: {**instance_of(client), **interface_of(client)},
            ),
        ),
        found=interface_of,
    ),
    "VOLUME_USED": Call(
        "ec2",
        "delete_volume",
        {},
        (
            INSTANCE,
            Call("ec2", "create_volume", {"AvailabilityZone": "us-west-2a", "Size": 1}),
            Call(
                "ec2",
                "attach_volume",
                {"Device": "/dev/sdf"},
                found=lambda client: {**instance_of(client), **volume_of(client)},
            ),
        ),
        found=volume_of,
    ),
    "ROLE_POLICIES": Call(
        "iam",
        "put_role_policy",
        {
            "RoleName": "large",
            "PolicyName": "p",
            "PolicyDocument": policy({**ANYTHING, "Resource": "x" * 10_240}),
        },
    ),
    "TRUST_SIZE": Call(
        "iam",
        "create_role",
        {"RoleName": "large", "AssumeRolePolicyDocument": json.dumps(large_policy(2048))},
    ),
    "KEY_LOST": Resource(
        "AWS::KMS::Key",
        {"KeyPolicy": json.loads(policy({**ANYTHING, "Action": "kms:Decrypt", "Principal": "*"}))},
    ),
    "RANGE_SIZE": Call("ec2", "create_subnet", {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/29"}),
    "USER_DATA": Call(
        "ec2",
        "create_launch_template",
        {
            "LaunchTemplateName": "large",
            "LaunchTemplateData": {"UserData": base64.b64encode(b"x" * 16_385).decode()},
        },
    ),
    "GROUP_SIZE": Resource(
        "AWS::AutoScaling::AutoScalingGroup",
        {"MinSize": "0", "MaxSize": "1", "DesiredCapacity": "2", "AvailabilityZones": ["us-west-2a"]},
    ),
    "NODE_GROUP_SIZE": Call(
        "eks",
        "create_nodegroup",
        {**NODES, "scalingConfig": {"minSize": 2, "maxSize": 4, "desiredSize": 1}},
    ),
    "NODE_GROUP_DISK": Call(
        "eks", "create_nodegroup", {**NODES, "diskSize": 50, "launchTemplate": {"name": "hosts"}}
    ),
    "TARGET_SIZE": Resource(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        {
            "ServiceNamespace": "ecs",
            "ResourceId": "service/c/s",
            "ScalableDimension": "ecs:service:DesiredCount",
            "MinCapacity": 2,
            "MaxCapacity": 1,
        },
    ),
    "SCHEDULE_FORM": Call("events", "put_rule", {"Name": "r", "ScheduleExpression": "rate(0 minutes)"}),
    "SCHEDULER_FORM": Call(
        "scheduler",
        "create_schedule",
        {**SCHEDULE, "Name": "wrong", "ScheduleExpression": "cron(0 2 * * * *)"},
    ),
    "TRANSITION_DAYS": lifecycle(
        {**RULE, "Transitions": [{"StorageClass": "STANDARD_IA", "TransitionInDays": 7}]}
    ),
    "OBJECT_LOCK": Resource(
        "AWS::S3::Bucket",
        {
            "ObjectLockConfiguration": {
                "ObjectLockEnabled": "Enabled",
                "Rule": {"DefaultRetention": {"Days": 30, "Mode": "COMPLIANCE"}},
            }
        },
    ),
    "DELIVERY_SIZE": Call(
        "firehose",
        "put_record_batch",
        {"DeliveryStreamName": "refused", "Records": [{"Data": b"x" * 900_000}] * 5},
    ),
    "DELIVERY_ERRORS": Call(
        "firehose",
        "create_delivery_stream",
        {
            "DeliveryStreamName": "refused",
            "ExtendedS3DestinationConfiguration": {
                "BucketARN": "arn:aws:s3:::refused",
                "RoleARN": ROLE,
                "Prefix": "usage/date=!{timestamp:yyyy-MM-dd}/",
            },
        },
    ),
    "LIFECYCLE_ID": lifecycle(RULE, {**RULE, "ExpirationInDays": 30}),
    "ATTRIBUTES_OF_KEYS": Call(
        "dynamodb",
        "create_table",
        {
            "TableName": "attributes",
            **TABLE,
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in ("k", "more")],
        },
    ),
    "CONTAINER_NAMES": containers({}, {}),
    "CONTAINER_ESSENTIAL": containers({"essential": False}),
    "CONTAINER_PORTS": containers(
        {"portMappings": [{"containerPort": 80, "hostPort": 8080}]}, networkMode="awsvpc"
    ),
    "CONTAINER_CHECK": containers({"healthCheck": {"command": ["CMD", "true"], "startPeriod": 301}}),
    "FARGATE_SIZE": containers(
        {}, networkMode="awsvpc", requiresCompatibilities=["FARGATE"], cpu="512", memory="512"
    ),
    "DASHBOARD_BODY": Call(
        "cloudwatch",
        "put_dashboard",
        {"DashboardName": "d", "DashboardBody": json.dumps({"widgets": [{}] * 501})},
    ),
    "PARAMETER_SIZE": Call("ssm", "put_parameter", {"Name": "/p", "Value": "x" * 4097, "Type": "String"}),
    "PATH_PART": Call(
        "apigateway", "create_resource", {"restApiId": "a", "parentId": "p", "pathPart": "v1 batches"}
    ),
    "API_TIMEOUT": Call(
        "apigateway",
        "put_integration",
        {"restApiId": "a", "resourceId": "r", "httpMethod": "GET", "type": "MOCK", "timeoutInMillis": 29_001},
    ),
    "MESSAGE_SIZE": Call("sns", "publish", {"TopicArn": ROLE, "Message": "x" * 262_145}),
    "MESSAGE_SUBJECT": Call("sns", "publish", {"TopicArn": ROLE, "Message": "x", "Subject": "two\nlines"}),
    "QUEUE_BOUNDS": Call(
        "sqs", "create_queue", {"QueueName": "q", "Attributes": {"MessageRetentionPeriod": "59"}}
    ),
    "ROLE_EXISTS": twice(role("twice")),
    "TABLE_EXISTS": twice(Call("dynamodb", "create_table", {"TableName": "twice", **TABLE})),
    "CONDITION_FAILED": twice(
        Call(
            "dynamodb",
            "put_item",
            {
                "TableName": "condition",
                "Item": {"k": {"S": "1"}},
                "ConditionExpression": "attribute_not_exists(k)",
            },
        ),
        Call("dynamodb", "create_table", {"TableName": "condition", **TABLE}),
    ),
    "KEY_EMPTY": after(
        Call("dynamodb", "put_item", {"TableName": "empty", "Item": {"k": {"S": ""}}}),
        Call("dynamodb", "create_table", {"TableName": "empty", **TABLE}),
    ),
    "ROTATION_WITHOUT_FUNCTION": after(
        Call("secretsmanager", "rotate_secret", {"SecretId": "alone"}), secret("alone")
    ),
    "ROTATION_NOT_ALLOWED": after(rotated("shut", "shut", ONE), secret("shut"), rotating("shut")),
    "ROTATION_IN_PROGRESS": after(rotated("busy", "busy", TWO), *rotation_of("busy")),
    "SECRET_VALUE_EXISTS": after(
        Call("secretsmanager", "put_secret_value", {**SECRET_VALUE, "SecretString": "other"}),
        secret("valued"),
        Call("secretsmanager", "put_secret_value", {**SECRET_VALUE, "SecretString": "one"}),
    ),
    "SECRET_VERSION_EMPTY": after(
        Call("secretsmanager", "get_secret_value", {"SecretId": "empty", "VersionId": ONE}),
        *rotation_of("empty"),
    ),
    "EXECUTION_EXISTS": after(execution("second"), machine("twice"), execution("first")),
    "STACK_PROTECTED": after(
        Call("cloudformation", "delete_stack", {"StackName": "protected"}),
        stack_call("create_stack", "protected", EnableTerminationProtection=True),
    ),
    "STACK_EXISTS": twice(stack_call("create_stack", "twice")),
    "NO_UPDATES": after(
        replace(stack_call("update_stack", "same"), found=complete("same")),
        stack_call("create_stack", "same"),
    ),
    "BUCKET_NOT_EMPTY": after(
        Call("s3", "delete_bucket", {"Bucket": "full"}),
        bucket("full"),
        Call("s3", "put_object", {"Bucket": "full", "Key": "k", "Body": b"x"}),
    ),
    "PART_TOO_SMALL": Call(
        "s3",
        "complete_multipart_upload",
        {"Bucket": "parts", "Key": "k"},
        (
            bucket("parts"),
            Call("s3", "create_multipart_upload", {"Bucket": "parts", "Key": "k"}),
            *(
                Call(
                    "s3",
                    "upload_part",
                    {"Bucket": "parts", "Key": "k", "PartNumber": number, "Body": b"x"},
                    found=upload_of,
                )
                for number in (1, 2)
            ),
        ),
        found=parts_of,
    ),
    "UPLOAD_UNKNOWN": after(
        Call("s3", "abort_multipart_upload", {"Bucket": "gone", "Key": "k", "UploadId": "none"}),
        bucket("gone"),
    ),
    "OBJECT_EXISTS": twice(
        Call("s3", "put_object", {"Bucket": "once", "Key": "k", "Body": b"x", "IfNoneMatch": "*"}),
        bucket("once"),
    ),
    "REPOSITORY_EXISTS": twice(Call("ecr", "create_repository", {"repositoryName": "twice"})),
    "STATEMENT_EXISTS": twice(
        Call(
            "lambda",
            "add_permission",
            {
                "FunctionName": "twice",
                "StatementId": "once",
                "Action": "lambda:InvokeFunction",
                "Principal": "events.amazonaws.com",
            },
        ),
        Call(
            "lambda",
            "create_function",
            {
                "FunctionName": "twice",
                "Runtime": "python3.11",
                "Handler": "index.handler",
                "Role": ROLE,
                "Code": {"ZipFile": EMPTY_ZIP},
            },
        ),
    ),
    "RECORD_EXISTS": Call(
        "route53",
        "change_resource_record_sets",
        {},
        (
            Call("route53", "create_hosted_zone", {"Name": "records.example", "CallerReference": "1"}),
            Call("route53", "change_resource_record_sets", {}, found=record),
        ),
        found=record,
    ),
    "SCHEDULE_EXISTS": twice(Call("scheduler", "create_schedule", SCHEDULE)),
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
        (Call("dynamodb", "create_table", {"TableName": "items", **TABLE}),),
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
    "KEYS_AT_ONCE": Call(
        "s3",
        "delete_objects",
        {"Bucket": "many", "Delete": {"Objects": [{"Key": f"k{index}"} for index in range(1001)]}},
        (bucket("many"),),
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
    "CLUSTER_SUBNETS": Call(
        "eks",
        "create_cluster",
        {"name": "one", "roleArn": ROLE, "resourcesVpcConfig": {"subnetIds": ["subnet-1"]}},
    ),
    "CLUSTER_ADMINISTRATOR": Call(
        "eks",
        "create_cluster",
        {
            "name": "locked",
            "roleArn": ROLE,
            "resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]},
            "accessConfig": {
                "authenticationMode": "CONFIG_MAP",
                "bootstrapClusterCreatorAdminPermissions": False,
            },
        },
    ),
    "VERSION_SKIPPED": Resource(
        "AWS::EKS::Cluster",
        {**EKS_CLUSTER, "Name": "skipped", "Version": "1.36"},
        before={**EKS_CLUSTER, "Name": "skipped"},
    ),
    "AUTHENTICATION_MODE": Resource(
        "AWS::EKS::Cluster",
        {**EKS_CLUSTER, "AccessConfig": {"AuthenticationMode": "API_AND_CONFIG_MAP"}},
        before=EKS_CLUSTER,
    ),
    "TYPE_AND_STRATEGY": Resource(
        "AWS::ECS::Service",
        {"LaunchType": "FARGATE", "CapacityProviderStrategy": [{"CapacityProvider": "FARGATE_SPOT"}]},
    ),
    "DAEMON_STRATEGY": Resource(
        "AWS::ECS::Service",
        {
            "SchedulingStrategy": "DAEMON",
            "CapacityProviderStrategy": [{"CapacityProvider": "FARGATE_SPOT"}],
        },
    ),
    "FARGATE_LOG_ROLE": containers({"logConfiguration": {"logDriver": "awslogs"}}, **FARGATE),
    "FARGATE_NETWORK": containers({}, **{**FARGATE, "networkMode": "host"}),
    "SECRETS_ROLE": containers({"secrets": [{"name": "TOKEN", "valueFrom": ROLE}]}),
    "SECRET_NAME": containers(
        {
            "secrets": [{"name": "TOKEN", "valueFrom": ROLE}],
            "environment": [{"name": "TOKEN", "value": "none"}],
        },
        executionRoleArn=ROLE,
    ),
    "CONTAINER_MEMORY": Call(
        "ecs",
        "register_task_definition",
        {"family": "refused", "containerDefinitions": [{"name": "main", "image": "i"}]},
    ),
    "ONE_INDEX": Resource("AWS::DynamoDB::Table", indexed("first", "other"), before=indexed()),
    "INDEX_THROUGHPUT": Call(
        "dynamodb",
        "create_table",
        {
            **indexed("first"),
            "GlobalSecondaryIndexes": [
                {
                    **indexed("first")["GlobalSecondaryIndexes"][0],
                    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
                }
            ],
        },
    ),
    "UNEVEN_BROKERS": Resource("AWS::MSK::Cluster", BROKERS),
    "POLICIES_PER_ROLE": Resource(
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": json.loads(
                policy({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"})
            ),
            "ManagedPolicyArns": [f"arn:aws:iam::aws:policy/p{number}" for number in range(11)],
        },
    ),
    "NO_RESOURCES": Call(
        "iam",
        "create_policy",
        {"PolicyName": "none", "PolicyDocument": policy({"Effect": "Allow", "Action": "s3:GetObject"})},
    ),
    "BUCKET_RESOURCE": bucket_policy("s3:GetObject", "other/*"),
    "BUCKET_ACTION": bucket_policy("s3:ListBucket", "mine/*"),
    "TOPIC_ACTION": Resource(
        "AWS::SNS::TopicPolicy",
        {
            "Topics": ["arn:aws:sns:us-west-2:123456789012:t"],
            "PolicyDocument": json.loads(
                policy({"Effect": "Allow", "Principal": "*", "Action": "sns:CreateTopic", "Resource": "*"})
            ),
        },
    ),
    "PATTERN_EMPTY": pattern(source=["aws.s3"], detail={}),
    "PATTERN_FORM": pattern(source="aws.s3"),
    "RULE_EMPTY": Call("events", "put_rule", {"Name": "empty"}),
    "ALARM_RESULT": alarm(Metrics=[query("one"), query("two")]),
    "ALARM_DATAPOINTS": alarm(DatapointsToAlarm=3, Metrics=[query("one")]),
    "ALARM_STATISTIC": alarm(Statistic="Sum", Metrics=[query("one")]),
    "BALANCER_SUBNETS": Resource("AWS::ElasticLoadBalancingV2::LoadBalancer", {"Subnets": ["subnet-1"]}),
    "PERMISSION_TWICE": Resource(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "hosts",
            "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "CidrIp": "10.0.0.0/8"}
            ]
            * 2,
        },
    ),
    "ENDPOINT_DOMAIN": Resource(
        "AWS::EC2::VPCEndpoint",
        {
            "VpcId": "vpc-1",
            "ServiceName": "com.amazonaws.us-west-2.sqs",
            "VpcEndpointType": "Interface",
            "PrivateDnsEnabled": True,
        },
        others=1,
    ),
    "ZONE_EXISTS": Resource(
        "AWS::Route53::HostedZone",
        {"Name": "models.example", "VPCs": [{"VPCId": "vpc-1", "VPCRegion": "us-west-2"}]},
        others=1,
    ),
}
