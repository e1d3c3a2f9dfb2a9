"""What AWS refuses for the parameters of a call alone, or for the properties of a resource alone.

What the models of the APIs and the schemas of the resource types say is checked from those
(`model_constraints.py`, `resource_checks.py`). These rows are what they leave out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from botocore.model import OperationModel

from inference_local.emulator import (
    data_refusals,
    definition_refusals,
    document_refusals,
    managed_refusals,
    property_refusals,
    service_refusals,
)
from inference_local.emulator import refusal_checks as checks
from inference_local.emulator.refusals import AwsApiError, Refusal, state_refusals

Values = Mapping[str, Any]

EVENT_TARGETS = Refusal(
    call="events:PutTargets, AWS::Events::Rule",
    when="A rule has more than 5 targets",
    code="LimitExceededException",
    message="The requested resource exceeds the maximum number allowed.",
    source="aws-cloudformation/cfn-lint#306; hashicorp/terraform-provider-aws#41316",
    check=checks.more_than("Targets", 5),
)
SID_FORM = Refusal(
    call="iam:PutRolePolicy, iam:CreatePolicy, iam:CreateRole, AWS::IAM::Policy, AWS::IAM::ManagedPolicy, "
    "AWS::IAM::Role",
    when="A statement's Sid has other characters than letters and digits",
    code="MalformedPolicyDocument",
    message="Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular "
    "expression [0-9A-Za-z]*",
    source="IAM User Guide, JSON policy elements: Sid",
    check=checks.wrong_sid,
)
SID_DOUBLED = Refusal(
    call="iam:PutRolePolicy, iam:CreatePolicy, iam:CreateRole, AWS::IAM::Policy, AWS::IAM::ManagedPolicy, "
    "AWS::IAM::Role",
    when="Two statements of a policy have the same Sid",
    code="MalformedPolicyDocument",
    message="Statement IDs (SID) in a single policy must be unique.",
    source="IAM User Guide, JSON policy elements: Sid",
    check=checks.doubled_sid,
)
MANAGED_POLICY_SIZE = Refusal(
    call="iam:CreatePolicy, AWS::IAM::ManagedPolicy",
    when="A managed policy has more than 6,144 characters without white space",
    code="LimitExceeded",
    message="Cannot exceed quota for PolicySize: {most}",
    source="IAM User Guide, IAM and AWS STS quotas",
    check=checks.longer_policy("PolicyDocument", 6144),
)
VARIABLES_SIZE = Refusal(
    call="lambda:CreateFunction, lambda:UpdateFunctionConfiguration, AWS::Lambda::Function",
    when="The variables of a function are larger than 4 KB",
    code="InvalidParameterValueException",
    message="Lambda was unable to configure your environment variables because the environment variables you "
    "have provided exceeded the 4KB limit. String measured: {measured}",
    source="AWS Lambda Developer Guide, quotas",
    check=checks.many_variables,
)
VARIABLES_RESERVED = Refusal(
    call="lambda:CreateFunction, lambda:UpdateFunctionConfiguration, AWS::Lambda::Function",
    when="A variable of a function has a name that Lambda keeps for itself",
    code="InvalidParameterValueException",
    message="Lambda was unable to configure your environment variables because the environment variables you "
    "have provided contains reserved keys that are currently not supported for modification. Reserved keys "
    "used in this request: {keys}",
    source="AWS Lambda Developer Guide, defined runtime environment variables",
    check=checks.reserved_variables,
)
LAYERS = Refusal(
    call="lambda:CreateFunction, lambda:UpdateFunctionConfiguration, AWS::Lambda::Function",
    when="A function has more than 5 layers",
    code="InvalidParameterValueException",
    message="Cannot reference more than 5 layers.",
    source="AWS Lambda Developer Guide, quotas",
    check=checks.more_than("Layers", 5),
)
FILTER_DEFAULT = Refusal(
    call="logs:PutMetricFilter, AWS::Logs::MetricFilter",
    when="A metric of a filter has dimensions and a default value",
    code="InvalidParameterException",
    message="Invalid metric transformation: dimensions and default value are mutually exclusive properties.",
    source="CloudWatch Logs API Reference, MetricTransformation",
    check=checks.mixed_metrics,
)
FILTER_DIMENSIONS = Refusal(
    call="logs:PutMetricFilter, AWS::Logs::MetricFilter",
    when="A metric of a filter has more than 3 dimensions",
    code="InvalidParameterException",
    message="Invalid metric transformation: a metric has at most 3 dimensions, got {count}",
    source="CloudWatch Logs API Reference, MetricTransformation, dimensions",
    check=checks.many_dimensions,
    is_quoted=False,
)
TRANSACTION_TWICE = Refusal(
    call="dynamodb:TransactWriteItems",
    when="Two operations of a transaction are on one item",
    code="ValidationException",
    message="Transaction request cannot include multiple operations on one item",
    source="DynamoDB API Reference, TransactWriteItems",
    check=checks.doubled_items,
)
EXPRESSION_SIZE = Refusal(
    call="dynamodb:UpdateItem, dynamodb:PutItem, dynamodb:DeleteItem, dynamodb:Query, dynamodb:Scan",
    when="An expression is longer than 4 KB",
    code="ValidationException",
    message="Invalid {name}: Expression size has exceeded the maximum allowed size; expression size: {size}",
    source="DynamoDB Developer Guide, service quotas: expression parameters",
    check=checks.long_expression,
)
METRIC_QUERIES = Refusal(
    call="cloudwatch:GetMetricData",
    when="A call has more than 500 queries",
    code="ValidationError",
    message="The collection MetricDataQueries must not have a size greater than {most}.",
    source="CloudWatch API Reference, GetMetricData: as many as 500 metrics",
    check=checks.more_than("MetricDataQueries", 500),
)
METRIC_POINTS = Refusal(
    call="cloudwatch:GetMetricStatistics",
    when="A call asks for more than 1,440 data points",
    code="InvalidParameterCombination",
    message="You have requested up to {count} datapoints, which exceeds the limit of 1,440. You may reduce "
    "the datapoints requested by increasing Period, or decreasing the time range.",
    source="CloudWatch API Reference, GetMetricStatistics",
    check=checks.many_points,
)
ALARM_PERIODS = Refusal(
    call="cloudwatch:PutMetricAlarm, AWS::CloudWatch::Alarm",
    when="The periods of an alarm are more than a day, or more than a week if each is an hour or longer",
    code="ValidationError",
    message="Metrics cannot be checked across more than a day (EvaluationPeriods * Period must be <= 86400).",
    source="CloudWatch API Reference, PutMetricAlarm, EvaluationPeriods",
    check=checks.period_too_long,
)
EVENTS_SIZE = Refusal(
    call="events:PutEvents",
    when="The entries of a call are larger than 1 MB together",
    code="ValidationException",
    message="Total size of the entries in the request is over the limit.",
    source="Amazon EventBridge User Guide, PutEvents event entry size",
    check=checks.large_events,
)
GROUP_DESCRIPTION = Refusal(
    call="ec2:CreateSecurityGroup, AWS::EC2::SecurityGroup",
    when="The description of a security group is longer than 255 characters, or has others than EC2 allows",
    code="InvalidParameterValue",
    message="Invalid security group description. Valid descriptions are strings less than 256 characters "
    "from the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{{}}!$*",
    source="EC2 API Reference, CreateSecurityGroup, GroupDescription",
    check=checks.group_description,
)
RULE_DESCRIPTION = Refusal(
    call="AWS::EC2::SecurityGroup, AWS::EC2::SecurityGroupIngress, AWS::EC2::SecurityGroupEgress",
    when="The description of a rule is longer than 255 characters, or has others than EC2 allows",
    code="InvalidParameterValue",
    message="Invalid rule description. Valid descriptions are strings less than 256 characters from the "
    "following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{{}}!$*",
    source="EC2 API Reference, IpRange, Description",
    check=checks.rule_descriptions,
)
BALANCER_NAME = Refusal(
    call="elbv2:CreateLoadBalancer, elbv2:CreateTargetGroup, AWS::ElasticLoadBalancingV2::LoadBalancer, "
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    when="The name of a load balancer or a target group is longer than 32 characters",
    code="ValidationError",
    message="The name '{name}' cannot be longer than '32' characters",
    source="Elastic Load Balancing API Reference, CreateLoadBalancer and CreateTargetGroup, Name",
    check=checks.load_balancer_name,
    is_quoted=False,
)
HEALTH_TIMEOUT = Refusal(
    call="elbv2:CreateTargetGroup, elbv2:ModifyTargetGroup, AWS::ElasticLoadBalancingV2::TargetGroup",
    when="The timeout of a health check is not shorter than its interval",
    code="ValidationError",
    message="Health check interval must be greater than the timeout.",
    source="aws/aws-cdk#3703; hashicorp/terraform-provider-aws#48071",
    check=checks.health_timeout,
)
BALANCER_SUBNETS = Refusal(
    call="elbv2:CreateLoadBalancer, AWS::ElasticLoadBalancingV2::LoadBalancer",
    when="An application load balancer has fewer than two subnets",
    code="ValidationError",
    message="At least two subnets in two different Availability Zones must be specified",
    source="hashicorp/terraform-provider-aws#15145; aws-samples/aws-cdk-examples#226",
    check=checks.few_balancer_subnets,
)
PERMISSION_TWICE = Refusal(
    call="ec2:AuthorizeSecurityGroupIngress, ec2:AuthorizeSecurityGroupEgress, AWS::EC2::SecurityGroup",
    when="A request has the same rule twice",
    code="InvalidParameterValue",
    message="The same permission must not appear multiple times",
    source="hashicorp/terraform-provider-aws#2587; hashicorp/terraform-provider-aws#29492",
    check=checks.doubled_rules,
)
SERVICES_AT_ONCE = Refusal(
    call="ecs:DescribeServices",
    when="A call names more than 10 services",
    code="InvalidParameterException",
    message="Services cannot have more than {most} elements",
    source="ECS API Reference, DescribeServices, services",
    check=checks.more_than("services", 10),
    is_quoted=False,
)
TASKS_AT_ONCE = Refusal(
    call="ecs:DescribeTasks",
    when="A call names more than 100 tasks",
    code="InvalidParameterException",
    message="Tasks cannot have more than {most} elements",
    source="ECS API Reference, DescribeTasks, tasks",
    check=checks.more_than("tasks", 100),
    is_quoted=False,
)
HOSTS_AT_ONCE = Refusal(
    call="ecs:DescribeContainerInstances",
    when="A call names more than 100 container instances",
    code="InvalidParameterException",
    message="Container instances cannot have more than {most} elements",
    source="ECS API Reference, DescribeContainerInstances, containerInstances",
    check=checks.more_than("containerInstances", 100),
    is_quoted=False,
)
STATES_AT_ONCE = Refusal(
    call="ecs:UpdateContainerInstancesState",
    when="A call names more than 10 container instances",
    code="InvalidParameterException",
    message="Container instances cannot have more than {most} elements",
    source="ECS API Reference, UpdateContainerInstancesState, containerInstances",
    check=checks.more_than("containerInstances", 10),
    is_quoted=False,
)
ATTRIBUTES_AT_ONCE = Refusal(
    call="ecs:PutAttributes, ecs:DeleteAttributes",
    when="A call has more than 10 attributes",
    code="InvalidParameterException",
    message="Attributes cannot have more than {most} elements",
    source="ECS API Reference, PutAttributes, attributes",
    check=checks.more_than("attributes", 10),
    is_quoted=False,
)
DEFINITIONS_AT_ONCE = Refusal(
    call="ecs:DeleteTaskDefinitions",
    when="A call names more than 10 task definitions",
    code="InvalidParameterException",
    message="Task definitions cannot have more than {most} elements",
    source="ECS API Reference, DeleteTaskDefinitions, taskDefinitions",
    check=checks.more_than("taskDefinitions", 10),
    is_quoted=False,
)
MESSAGES_AT_ONCE = Refusal(
    call="sqs:ReceiveMessage",
    when="A call asks for more than 10 messages, or for none",
    code="InvalidParameterValue",
    message="Value {value} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, "
    "if provided.",
    source="Amazon SQS API Reference, ReceiveMessage, MaxNumberOfMessages",
    check=checks.outside("MaxNumberOfMessages", 1, 10),
)
RECEIVE_WAIT = Refusal(
    call="sqs:ReceiveMessage",
    when="A call waits longer than 20 seconds",
    code="InvalidParameterValue",
    message="Value {value} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if "
    "provided.",
    source="Amazon SQS API Reference, ReceiveMessage, WaitTimeSeconds",
    check=checks.outside("WaitTimeSeconds", 0, 20),
)
VISIBILITY = Refusal(
    call="sqs:ChangeMessageVisibility, sqs:ReceiveMessage",
    when="A message stays invisible for longer than 12 hours",
    code="InvalidParameterValue",
    message="Value {value} for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200.",
    source="Amazon SQS API Reference, ChangeMessageVisibility",
    check=checks.outside("VisibilityTimeout", 0, 43_200),
)
KEYS_AT_ONCE = Refusal(
    call="s3:DeleteObjects",
    when="A call names more than 1,000 objects",
    code="MalformedXML",
    message="The XML you provided was not well-formed or did not validate against our published schema",
    source="Amazon S3 API Reference, DeleteObjects: up to 1,000 keys",
    check=lambda given: checks.more_than("Objects", 1000)(given.get("Delete") or {}),
)
CACHE_USER = Refusal(
    call="elasticache:CreateUser, AWS::ElastiCache::User",
    when="A user with IAM authentication has a name other than its id",
    code="InvalidParameterValue",
    message="For IAM authentication, user ID and user name must be identical",
    source="Amazon ElastiCache User Guide, authenticating with IAM: limitations",
    check=checks.iam_user_name,
    is_quoted=False,
)
TEMPLATE_BODY = Refusal(
    call="cloudformation:CreateStack, cloudformation:UpdateStack, cloudformation:CreateChangeSet",
    when="A template in the request is larger than 51,200 bytes",
    code="ValidationError",
    message="1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must "
    "have length less than or equal to 51200",
    source="CloudFormation User Guide, quotas",
    check=checks.template_body,
)
NODE_LABEL = Refusal(
    call="eks:CreateNodegroup, AWS::EKS::Nodegroup",
    when="A label of a node group has a prefix that Kubernetes keeps for itself",
    code="InvalidParameterException",
    message="Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]",
    source="eksctl-io/eksctl#4007; aws/containers-roadmap#1451",
    check=checks.node_label,
)
ENTRY_TYPE = Refusal(
    call="eks:CreateAccessEntry, AWS::EKS::AccessEntry",
    when="An access entry of nodes has a user name or groups of Kubernetes",
    code="InvalidParameterException",
    message="The {kind} access entry type does not support specifying kubernetesGroups or username.",
    source="EKS API Reference, CreateAccessEntry, type",
    check=checks.typed_entry,
    is_quoted=False,
)


def refusals() -> dict[str, Refusal]:
    """Return all rows by name: those of this file, and those of the stand-ins' own code."""
    mine = {name: each for name, each in globals().items() if isinstance(each, Refusal)}
    others = (
        service_refusals,
        property_refusals,
        document_refusals,
        definition_refusals,
        managed_refusals,
        data_refusals,
    )
    found = {name: each for file in others for name, each in vars(file).items() if isinstance(each, Refusal)}
    return {**state_refusals(), **found, **mine}


def refused_request(operation: OperationModel, parameters: Values) -> AwsApiError | None:
    """Return the error of the first row that applies to a call; None if none does."""
    return _refused(f"{operation.service_model.service_name}:{operation.name}", parameters)


def refused_resource(resource_type: str, properties: Values) -> AwsApiError | None:
    """Return the error of the first row that applies to a resource; None if none does."""
    return _refused(resource_type, properties)


def refused_update(resource_type: str, before: Values, after: Values) -> AwsApiError | None:
    """Return the error of the first row that applies to an update of a resource; None if none does."""
    for row in _rows_by_call().get(f"update of {resource_type}", ()):
        found = row.change(before, after) if row.change else None
        if found is not None:
            return row.error(**found)
    return None


def _refused(call: str, values: Values) -> AwsApiError | None:
    for row in _rows_by_call().get(call, ()):
        found = row.check(values) if row.check else None
        if found is not None:
            return row.error(**found)
    return None


@cache
def _rows_by_call() -> dict[str, list[Refusal]]:
    rows: dict[str, list[Refusal]] = {}
    for row in refusals().values():
        for call in row.call.split(", ") if row.check or row.change else ():
            rows.setdefault(call, []).append(row)
    return rows
