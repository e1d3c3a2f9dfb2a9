"""What AWS refuses, as the emulator says it. Each row names its source.

A row with a `check` is decided from the parameters of a call, or the properties of a resource, alone, and one
with a `change` from those before and after an update. The others are decided by the code of a stand-in or by
ministack. All words come from here, so that this table and `request_refusals.py` list every refusal that a
deployment on this machine was checked against.
`tests/local/emulator/refused.py` has the example of each row, which is sent to a running emulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Returns what to fill into the words of a row; None if the row does not apply.
Check = Callable[[Mapping[str, Any]], Mapping[str, object] | None]
#: The same of an update, from the properties before and after it.
ChangeCheck = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, object] | None]

# Errors of the APIs of ECS and of Application Auto Scaling.


class AwsApiError(Exception):
    """An answer with an error.

    code: Name of the exception in the API's model.
    message: What is wrong.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Refusal:
    """An error that AWS answers with."""

    call: str
    """Service and operation, or the type of the CloudFormation resource."""
    when: str
    """What the caller did."""
    code: str
    """AWS's name of the error."""
    message: str
    """AWS's text. Parts in braces are filled in."""
    source: str
    """The document, or the repository and number of a public issue, that shows the refusal. Empty if none is
    public: `docs/refusals.md` lists such rows."""
    check: Check | None = None
    """Decides from the parameters of the call, or the properties of the resource, alone."""
    change: ChangeCheck | None = None
    """Decides from the properties before and after an update of a resource."""
    is_quoted: bool = True
    """Whether the message has AWS's words. They are not public for every refusal that a document states."""

    def error(self, **values: object) -> AwsApiError:
        """Return the error with its parts filled in."""
        return AwsApiError(self.code, self.message.format(**values))


BEYOND_MODEL = Refusal(
    call="every call of the services in request_parameters.py",
    when="A value is outside the bounds of the API's model: length, number, pattern or list of values",
    code="ValidationException",
    message="{count} validation error{plural} detected: {found}",
    source="the models in botocore; words: NixOS/nixops#328",
)

BEYOND_SCHEMA = Refusal(
    call="every resource type in resource_schemas.json",
    when="A property is unknown or missing, or outside the bounds of the type's schema",
    code="ValidationError",
    message="Properties validation failed for resource {resource} with message:\n{found}",
    source="aws-samples/retail-demo-store#508; aws/aws-cdk#22888; the schemas of the types",
)

POD_IDENTITY_EXISTS = Refusal(
    call="eks:CreatePodIdentityAssociation, AWS::EKS::PodIdentityAssociation",
    when="The service account of a cluster has an association already",
    code="ResourceInUseException",
    message="Association already exists: {association}",
    source="eksctl-io/eksctl#7753; EKS API Reference, CreatePodIdentityAssociation",
)

LOG_GROUP_EXISTS = Refusal(
    call="AWS::Logs::LogGroup",
    when="A log group has the name already, also one that a service has created",
    code="AlreadyExists",
    message=(
        "Resource of type 'AWS::Logs::LogGroup' with identifier "
        '\'{{"/properties/LogGroupName":"{name}"}}\' already exists.'
    ),
    source="CloudWatch Logs API Reference, CreateLogGroup: ResourceAlreadyExistsException; aws/aws-cdk#19812",
)

NAME_EXISTS = Refusal(
    call="CloudFormation, creation of a resource",
    when="Another resource of the account and region has the same name",
    code="AlreadyExists",
    message="Resource of type '{type}' with identifier '{name}' already exists.",
    source="CloudFormation CLI User Guide, resource type handler contract: AlreadyExists of a create handler",
)

CUSTOM_NAME_REPLACED = Refusal(
    call="CloudFormation, update of a resource",
    when="A property that cannot change has changed, and the template gives the resource the same name",
    code="ValidationError",
    message=(
        "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
        "Rename {name} and update the stack again."
    ),
    source="re:Post, CloudFormation error of a custom-named resource; the types' createOnlyProperties",
)

PROVIDER_EXISTS = Refusal(
    call="ecs:CreateCapacityProvider, and a replacement of AWS::ECS::CapacityProvider under the same Name",
    when="A capacity provider of the account and region has the name",
    code="ClientException",
    message="The specified capacity provider already exists. To change the configuration of an existing "
    "capacity provider, update the capacity provider.",
    source="aws/containers-roadmap#688; CloudFormation schema of AWS::ECS::CapacityProvider, "
    "createOnlyProperties: AutoScalingGroupArn, Name, ClusterName",
)

PROVIDER_NAME_RESERVED = Refusal(
    call="ecs:CreateCapacityProvider",
    when="The name begins with aws, ecs or fargate",
    code="ClientException",
    message="The name of a capacity provider cannot start with aws, ecs or fargate.",
    source="ECS API Reference, CreateCapacityProvider, name",
)

GROUP_HAS_PROVIDER = Refusal(
    call="ecs:CreateCapacityProvider",
    when="Another capacity provider has the Auto Scaling group",
    code="ClientException",
    message="The specified Auto Scaling group ARN is already being used by another capacity provider. "
    "Specify a unique Auto Scaling group ARN and try again.",
    source="aws/containers-roadmap#632",
)

PROVIDER_UNKNOWN = Refusal(
    call="ecs:PutClusterCapacityProviders, ecs:DeleteCapacityProvider",
    when="There is no such capacity provider",
    code="InvalidParameterException",
    message="The specified capacity provider {provider} was not found.",
    source="ECS API Reference, PutClusterCapacityProviders: it must already be created",
)

MANAGED_PROVIDER_ASSOCIATED = Refusal(
    call="ecs:PutClusterCapacityProviders, AWS::ECS::ClusterCapacityProviderAssociations",
    when="The list names a provider of Managed Instances, which belongs to its cluster from its creation",
    code="InvalidParameterException",
    message="Cannot associate Managed Instances capacity provider to clusters using this API. Managed "
    "Instances capacity providers are already associated with a cluster.",
    source="hashicorp/terraform-provider-aws#44783; aws/aws-cdk#35699",
)

PROVIDER_IN_USE = Refusal(
    call="ecs:PutClusterCapacityProviders, ecs:DeleteCapacityProvider",
    when="Services or tasks of the cluster use a provider that the new list leaves out, or that is deleted",
    code="ResourceInUseException",
    message="The specified capacity provider is in use and cannot be removed.",
    source="aws/containers-roadmap#631; ECS API Reference, PutClusterCapacityProviders and "
    "DeleteCapacityProvider",
)

PROVIDER_ASSOCIATED = Refusal(
    call="ecs:DeleteCapacityProvider",
    when="The capacity provider is associated with a cluster",
    code="ClientException",
    message="The capacity provider cannot be deleted because it is associated with cluster: {cluster}. "
    "Remove the capacity provider from the cluster and try again.",
    source="ECS API Reference, DeleteCapacityProvider; ekristen/aws-nuke#542",
)

PROVIDER_NOT_ASSOCIATED = Refusal(
    call="ecs:CreateService, ecs:UpdateService, ecs:RunTask",
    when="A strategy names a provider that the cluster does not have",
    code="InvalidParameterException",
    message="The specified capacity provider '{provider}' was not found or is not associated with the "
    "cluster.",
    source="ECS API Reference, CreateService, capacityProviderStrategy",
)

STRATEGY_NOT_FORCED = Refusal(
    call="ecs:UpdateService, and AWS::ECS::Service without a new ForceNewDeploymentNonce",
    when="The strategy changes without forceNewDeployment",
    code="InvalidParameterException",
    message="When switching from launch type to capacity provider strategy on an existing service, or making "
    "a change to a capacity provider strategy on a service that is already using one, you must force a new "
    "deployment.",
    source="pipe-cd/pipecd#6385; CloudFormation User Guide, AWS::ECS::Service",
)

INSTANCE_TAG_KEY = Refusal(
    call="ec2:RunInstances of ECS Managed Instances, here for the first service that needs them",
    when="Tags are in the metadata of the instance, and a key has other characters than those of its paths",
    code="InvalidParameterValue",
    message="'{key}' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\\\-_+=,.@:]{{1,255}}), "
    "and must not be a reserved name ('.', '..', '_index')",
    source="ECS API Reference, InstanceLaunchTemplate, instanceMetadataTagsPropagation; seek-oss/aec#411",
)

MANAGED_PROVIDERS_MIXED = Refusal(
    call="ecs:UpdateService",
    when="The strategy has several providers, and one is of Managed Instances",
    code="InvalidParameterException",
    message="Specifying multiple capacity providers is not supported when using a MANAGED_INSTANCES capacity "
    "provider",
    source="terraform-aws-modules/terraform-aws-ecs#410",
)

NETWORK_NOT_VALID = Refusal(
    call="ecs:CreateService, ecs:UpdateService",
    when="The service has a network configuration, and tasks of its definition have no network of their own",
    code="InvalidParameterException",
    message="Network Configuration is not valid for the given networkMode of this task definition.",
    source="cloudposse/terraform-aws-ecs-alb-service-task#22; ECS API Reference, CreateService, "
    "networkConfiguration: it isn't supported for other network modes",
)

SERVICE_UNKNOWN = Refusal(
    call="ecs:UpdateService, ecs:DeleteService",
    when="The cluster has no such service",
    code="ServiceNotFoundException",
    message="Service not found.",
    source="ECS API Reference, UpdateService and DeleteService, errors",
    is_quoted=False,
)

SERVICE_NOT_ACTIVE = Refusal(
    call="ecs:UpdateService, ecs:DeleteService",
    when="The service was deleted",
    code="ServiceNotActiveException",
    message="Service was not ACTIVE.",
    source="ECS API Reference, UpdateService, errors",
    is_quoted=False,
)

NEW_TARGET_WITHOUT_RANGE = Refusal(
    call="application-autoscaling:RegisterScalableTarget",
    when="The target is new, and the call has no minimum or no maximum",
    code="ValidationException",
    message="Minimum and maximum capacity must be specified to register a new scalable target",
    source="Application Auto Scaling API Reference, RegisterScalableTarget, MinCapacity and MaxCapacity",
    is_quoted=False,
)

EXECUTE_COMMAND_OFF = Refusal(
    call="ecs:ExecuteCommand",
    when="The task was started without execute command, or has not started yet",
    code="InvalidParameterException",
    message="The execute command failed because execute command was not enabled when the task was run or the "
    "execute command agent isn't running. Wait and try again or run a new task with execute command enabled "
    "and try again.",
    source="aws-containers/amazon-ecs-exec-checker, README; alphagov/govuk-infrastructure#344",
)

NOT_INTERACTIVE = Refusal(
    call="ecs:ExecuteCommand",
    when="The session is not interactive",
    code="InvalidParameterException",
    message="Interactive is the only mode supported currently.",
    source="ECS API Reference, ExecuteCommand, interactive: you must specify true",
)

STACK_CHANGES = Refusal(
    call="cloudformation:CreateChangeSet",
    when="CloudFormation still changes the stack",
    code="ValidationError",
    message="Stack:{stack} is in {status} state and can not be updated.",
    source="ansible-collections/amazon.aws#1910; words: realestate-com-au/stackup#48",
)

NO_CAPACITY = Refusal(
    call="ec2:RunInstances of an Auto Scaling group, in DescribeScalingActivities",
    when="EC2 has no free instance of the type in the zone: a fault that tests set",
    code="InsufficientInstanceCapacity",
    message="Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have "
    "sufficient {type} capacity in the Availability Zone you requested ({zone}). Our system will be working "
    "on provisioning additional capacity. Launching EC2 instance failed.",
    source="hashicorp/terraform-provider-aws#1496; AWS Batch samples quote it of an Auto Scaling group",
)

VCPU_LIMIT = Refusal(
    call="ec2:RunInstances of an Auto Scaling group, in DescribeScalingActivities",
    when="The account's quota of vCPUs for the family is used up: a fault that tests set",
    code="VcpuLimitExceeded",
    message="Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity "
    "than your current vCPU limit of {limit} allows for the instance bucket that the specified instance type "
    "belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this "
    "limit. Launching EC2 instance failed.",
    source="scrapoxy/scrapoxy#202; aws-samples/cost-effective-aws-deployment-of-comfyui#39",
)

GROUP_UNKNOWN = Refusal(
    call="autoscaling:SetInstanceProtection",
    when="There is no such Auto Scaling group",
    code="ValidationError",
    message="AutoScalingGroup name not found - AutoScalingGroup: {group} not found",
    source="cloud-custodian/cloud-custodian#250: the first words, of DeleteAutoScalingGroup",
)

INSTANCES_AT_ONCE = Refusal(
    call="autoscaling:SetInstanceProtection",
    when="The call names more than 50 instances",
    code="ValidationError",
    message="1 validation error detected: Value at 'instanceIds' failed to satisfy constraint: {count} "
    "instances were given; a call has at most 50",
    source="EC2 Auto Scaling API Reference, SetInstanceProtection: you can specify up to 50 instances",
    is_quoted=False,
)

INSTANCE_NOT_IN_GROUP = Refusal(
    call="autoscaling:SetInstanceProtection",
    when="An instance has left the group, or never was in it. No instance is changed",
    code="ValidationError",
    message="The instance {instance} is not part of Auto Scaling group {group}.",
    source="hashicorp/terraform-provider-aws#35071; ambiata/mismi, Test.Mismi.Autoscaling.Data",
)

INSTANCE_NOT_IN_SERVICE = Refusal(
    call="autoscaling:SetInstanceProtection",
    when="An instance starts or ends. No instance is changed",
    code="ValidationError",
    message="The instance {instance} is not in InService or EnteringStandby or Standby.",
    source="guardian/riff-raff#510; ambiata/mismi, Test.Mismi.Autoscaling.Data",
)

GROUP_PROTECTED = Refusal(
    call="AWS::AutoScaling::AutoScalingGroup, deletion",
    when="Hosts of the group are protected from scale-in: the deletion waits for their end, then fails",
    code="ScalingActivityInProgress",
    message="Could not scale to desired capacity because all remaining instances are protected from "
    "scale-in.",
    source="aws/aws-cdk#18179; aws/containers-roadmap#2862; words: "
    "aws-samples/aws-fault-injection-simulator-workshop#114",
)

FEWER_PARTITIONS = Refusal(
    call="kafka:UpdateTopic, update of AWS::MSK::Topic",
    when="The topic has more partitions than the update asks for",
    code="BadRequestException",
    message="Topic currently has {before} partitions, {after} would not be an increase.",
    source=(
        'Apache Kafka, "Modifying topics", and the message of its InvalidPartitionsException; the code is '
        "that of Amazon MSK API Reference, UpdateTopic"
    ),
)

_TASK: Final = "stepfunctions:SendTaskSuccess, stepfunctions:SendTaskFailure, stepfunctions:SendTaskHeartbeat"
TASK_ENDED = Refusal(
    call=_TASK,
    when="The task of the token has ended, or its execution has",
    code="TaskTimedOut",
    message="Task Timed Out: 'Provided task does not exist anymore'",
    source="AWS Step Functions API Reference, SendTaskSuccess: TaskTimedOut; "
    "aws-samples/amazon-mwaa-examples#61",
)

TOKEN_UNKNOWN = Refusal(
    call=_TASK,
    when="The token is none of Step Functions",
    code="InvalidToken",
    message="Invalid Token: 'Invalid token'",
    source="AWS Step Functions API Reference, SendTaskSuccess: InvalidToken; words: localstack/localstack, "
    "test_sfn_api_aliasing.snapshot.json, recorded from AWS",
)

DATA_LIMIT = Refusal(
    call="AWS Step Functions, the result of a task or of a map",
    when="The result is larger than 256 KiB",
    code="States.DataLimitExceeded",
    message="The state/task '{name}' returned a result with a size exceeding the maximum number of bytes "
    "service limit.",
    source="localstack/localstack, test_states_errors.snapshot.json, recorded from AWS; AWS Step Functions "
    "Developer Guide, quotas",
)

PART_TOO_SMALL = Refusal(
    call="s3:CompleteMultipartUpload",
    when="A part that is not the last is smaller than 5 MiB",
    code="EntityTooSmall",
    message="Your proposed upload is smaller than the minimum allowed size",
    source="Amazon S3 User Guide, multipart upload limits",
)

GROUP_USED = Refusal(
    call="ec2:DeleteSecurityGroup",
    when="A network interface has the security group",
    code="DependencyViolation",
    message="resource {group} has a dependent object",
    source="EC2 API Reference, DeleteSecurityGroup and error codes",
)

INTERFACE_USED = Refusal(
    call="ec2:DeleteNetworkInterface",
    when="The network interface is attached",
    code="InvalidNetworkInterface.InUse",
    message="{interface} is currently in use.",
    source="EC2 API Reference, DeleteNetworkInterface and error codes",
)

ENDPOINT_DOMAIN = Refusal(
    call="AWS::EC2::VPCEndpoint",
    when="Another endpoint of the VPC has the private name of the service",
    code="InvalidParameter",
    message="private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
    "{domain} in the VPC {vpc}",
    source="hashicorp/terraform-provider-aws#17535; fortinet/fortigate-autoscale-aws#43",
)

ENDPOINT_ZONES = Refusal(
    call="AWS::EC2::VPCEndpoint",
    when="Two subnets of an endpoint are in one zone",
    code="DuplicateSubnetsInSameZone",
    message="Found another VPC endpoint subnet in the availability zone of {subnet}. VPC endpoint subnets "
    "should be in different availability zones supported by the VPC endpoint service.",
    source="eksctl-io/eksctl#8150; EC2 API Reference, error codes",
)

ZONE_EXISTS = Refusal(
    call="AWS::Route53::HostedZone",
    when="The VPC has a private zone of the name",
    code="ConflictingDomainExists",
    message="The VPC {vpc} in region {region} has already been associated with the hosted zone {zone} with "
    "the same domain name.",
    source="hashicorp/terraform-provider-aws#37783; Route 53 API Reference, CreateHostedZone",
)

# Decided by ministack.

ITEM_TOO_LARGE = Refusal(
    call="dynamodb:PutItem, UpdateItem, BatchWriteItem, TransactWriteItems",
    when="An item has more than 400 KB, with the names of its attributes",
    code="ValidationException",
    message="Item size has exceeded the maximum allowed size",
    source="DynamoDB Developer Guide, Quotas in Amazon DynamoDB: item size; words: "
    "justinram11/langgraph-checkpoint-dynamodb#2",
)

INSTANCE_UNKNOWN = Refusal(
    call="ec2:RebootInstances",
    when="No instance of the account has the identifier. One that is terminated is no error: it is ignored",
    code="InvalidInstanceID.NotFound",
    message="The instance ID '{instance}' does not exist",
    source="Amazon EC2 API Reference, RebootInstances and Error codes: InvalidInstanceID.NotFound; "
    "aws/karpenter-provider-aws v1.15.1, Reboot in pkg/providers/instance/instance.go",
)


def state_refusals() -> dict[str, Refusal]:
    """Return the rows of this file by name."""
    return {name: each for name, each in globals().items() if isinstance(each, Refusal)}
