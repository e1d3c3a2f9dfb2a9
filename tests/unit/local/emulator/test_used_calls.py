"""Every call of AWS and every resource type that the library uses has refusals in the table, or a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import botocore.session
from botocore import xform_name

from inference_blueprints.resources import root
from inference_catalog.cloudformation_types import cloudformation_types
from inference_local.emulator.request_parameters import SERVICES
from inference_local.emulator.request_refusals import refusals

FOLDERS = ("runtime", "inference_blueprints", "constructs", "stacks", "contracts", "catalog")
#: Services that are called and not emulated.
OTHER_SERVICES = ("service-quotas",)
#: Methods of other objects that have the name of a call.
OTHER_METHODS = {"create_connection", "execute_command", "get_session", "verify"}
#: Calls that read are refused for values outside the API's model, for unknown names and for missing
#: permission. What else they refuse is in the table (errors of these operations in the API references).
READING = ("batch_get_", "describe_", "get_", "head_", "list_", "query", "scan")
#: Calls without a row, by what was read.
CALLS = {
    "API references, errors: only an unknown name, a wrong state that the caller expects, or a permission": {
        *("attach_role_policy", "delete_load_balancer", "delete_log_group", "delete_message"),
        *("delete_object", "start_build", "stop_execution", "terminate_instance_in_auto_scaling_group"),
        *("update_auto_scaling_group", "update_map_run", "update_termination_protection"),
    },
    "S3 API Reference, CopyObject: 5 GB at most, which no configuration comes near": {"copy_object"},
    "S3 API Reference: parts are checked at the end of an upload": {
        *("create_multipart_upload", "upload_part_copy"),
    },
    "IAM and API Gateway API references: the account has one role of this kind (`blueprints doctor`)": {
        *("create_service_linked_role", "update_account"),
    },
    "EC2 API Reference, error codes: unknown ids, and states in which the removal asks again": {
        *("delete_nat_gateway", "delete_snapshot", "terminate_instances"),
    },
    "Lambda API Reference, Invoke: 6 MB of request, which no call here comes near": {"invoke"},
    "Secrets Manager API Reference, errors: unknown secrets and versions, and labels of another version": {
        "update_secret_version_stage",
    },
}
#: Resource types without a row of their own, by what was read. Their schemas are checked, and their names.
TYPES = {
    "API Gateway REST API Reference, errors: only what is in the schema, and other resources of the API": {
        *("AWS::ApiGateway::Authorizer", "AWS::ApiGateway::Deployment", "AWS::ApiGateway::GatewayResponse"),
        *("AWS::ApiGateway::RestApi", "AWS::ApiGateway::Stage"),
    },
    "Athena, Glue and CodeBuild API references, errors: names that exist, and the schema": {
        *("AWS::Athena::WorkGroup", "AWS::CodeBuild::Project", "AWS::Glue::Database", "AWS::Glue::Table"),
    },
    "EC2 API Reference, errors of these calls: quotas, unknown ids, and resources of another VPC": {
        *("AWS::EC2::EIP", "AWS::EC2::FlowLog", "AWS::EC2::InternetGateway", "AWS::EC2::NatGateway"),
        *("AWS::EC2::Route", "AWS::EC2::RouteTable", "AWS::EC2::SubnetRouteTableAssociation"),
        *("AWS::EC2::VPCGatewayAttachment",),
    },
    "ECR and EFS API references, errors: names that exist, and one mount target per zone": {
        *("AWS::ECR::Repository", "AWS::EFS::AccessPoint", "AWS::EFS::FileSystem", "AWS::EFS::MountTarget"),
    },
    "Managed Service for Apache Flink API Reference, errors: unknown names and states": {
        "AWS::KinesisAnalyticsV2::ApplicationCloudWatchLoggingOption",
    },
    "Elastic Load Balancing API Reference, errors: quotas and priorities that exist": {
        *("AWS::ElasticLoadBalancingV2::Listener", "AWS::ElasticLoadBalancingV2::ListenerRule"),
    },
    "API references of these services, errors: names that exist, quotas, and what the schema has": {
        *("AWS::IAM::InstanceProfile", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::LayerVersion"),
        *("AWS::Lambda::Permission",),
        *("AWS::Logs::LogStream", "AWS::SNS::Topic"),
        *("AWS::SQS::QueuePolicy", "AWS::SecretsManager::Secret"),
    },
    "Route 53 and Cloud Map API references, errors: names that exist in the VPC": {
        "AWS::Route53::RecordSet",
        *("AWS::ServiceDiscovery::PrivateDnsNamespace", "AWS::ServiceDiscovery::Service"),
    },
    "ECS API Reference, CreateCluster, errors: only unknown names and permissions": {"AWS::ECS::Cluster"},
}

#: How programs in Java reach AWS, by what was read: packages, signed services and file systems. None of them
#: has a client of the SDK for a service; if one gets it, its calls need rows.
JAVA = {
    "AWS SDK for Java 2.x: credentials and signatures, which other entries here use": {
        *("software.amazon.awssdk.auth", "software.amazon.awssdk.http", "software.amazon.awssdk.identity"),
        "software.amazon.awssdk.regions",
    },
    "Managed Service for Apache Flink Developer Guide, runtime properties: read from a file": {
        "com.amazonaws.services.kinesisanalytics",
    },
    "Amazon MSK Developer Guide, IAM access control: only missing permissions. The rest is Kafka's": {
        "software.amazon.msk",
    },
    "Amazon ElastiCache User Guide, authenticating with IAM: only missing permissions and old tokens": {
        "signed for elasticache",
    },
    "Secrets Manager API Reference, GetSecretValue: unknown secrets and versions, and missing permissions": {
        "signed for secretsmanager",
    },
    "Amazon S3 API Reference: Flink's file system writes parts and completes uploads, which have rows": {
        "s3a",
    },
}


def rows() -> set[str]:
    """Return the calls and types that have a row. Some have a condition, or the service only once."""
    words = re.compile(r"AWS::\w+::\w+|[a-z0-9-]+:[A-Z]\w+")
    return {name for row in refusals().values() for name in words.findall(row.call)}


def called_methods() -> Iterator[str]:
    for folder in FOLDERS:
        for path in sorted((root() / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Attribute):
                    yield node.attr
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value  # of paginators and presigned addresses


def operations() -> dict[str, set[str]]:
    """Return the calls of each method's name: service and operation."""
    session = botocore.session.get_session()
    found: dict[str, set[str]] = {}
    for service in (*SERVICES, *OTHER_SERVICES):
        for operation in session.get_service_model(service).operation_names:
            found.setdefault(xform_name(operation), set()).add(f"{service}:{operation}")
    return found


def test_every_call_has_a_row_or_a_reason() -> None:
    """Red if a new call of AWS is never refused here, and nobody has read what AWS refuses."""
    known, has_row = operations(), rows()
    used = (set(called_methods()) & known.keys()) - OTHER_METHODS
    writing = {name for name in used if not name.startswith(READING)}
    without = {name for name in writing if not known[name] & has_row}
    assert without == set().union(*CALLS.values())


def test_every_resource_type_has_a_row_or_a_reason() -> None:
    """Red if a new type is never refused here, and nobody has read what AWS refuses."""
    has_row = rows()
    without = {name for name in cloudformation_types() if name not in has_row}
    assert without == set().union(*TYPES.values())


def reached_by_java(text: str) -> set[str]:
    """Return how a program reaches AWS: packages, services of signatures, file systems, and calls."""
    sdk = r"software\.amazon\.(?:awssdk\.services\.\w+|awssdk\.\w+|\w+)|com\.amazonaws(?:\.\w+){2}"
    found = set(re.findall(rf'(?:import |")({sdk})', text)) | set(re.findall(r'"(s3a?):', text))
    found |= {f"signed for {each}" for each in re.findall(r'SERVICE\w*\s*[=,]\s*"([\w-]+)"', text)}
    methods = {name[0].upper() + name[1:] for name in re.findall(r"\.(\w+)\(", text)}
    for package in [each for each in found if ".services." in each and each.startswith("software")]:
        service = package.rpartition(".")[2]
        if service in SERVICES:
            model = botocore.session.get_session().get_service_model(service)
            found |= {f"{service}:{name}" for name in methods & set(model.operation_names)}
            found.discard(package)
    return found


def test_what_java_calls_has_a_row_or_a_reason() -> None:
    """Red if a program in Java begins to call AWS otherwise, and nobody has read what AWS refuses."""
    sample = "import software.amazon.awssdk.services.sqs.SqsClient; client.sendMessage(one); client.names();"
    assert reached_by_java(sample) == {"sqs:SendMessage"}
    programs = (root() / "runtime" / "java").glob("*/src/main/**/*.java")
    reached = set().union(*(reached_by_java(path.read_text("utf-8")) for path in programs))
    assert reached - rows() == set().union(*JAVA.values())
