"""What AWS refuses because of what exists, and ministack refuses too. Each row is proven by its example."""

from __future__ import annotations

from inference_local.emulator.refusals import Refusal

ROLE_EXISTS = Refusal(
    call="iam:CreateRole",
    when="A role has the name already",
    code="EntityAlreadyExists",
    message="Role with name {name} already exists.",
    source="IAM API Reference, CreateRole",
)
TABLE_EXISTS = Refusal(
    call="dynamodb:CreateTable",
    when="A table of the account and region has the name",
    code="ResourceInUseException",
    message="Table already exists: {name}",
    source="DynamoDB API Reference, CreateTable",
)
CONDITION_FAILED = Refusal(
    call="dynamodb:PutItem, dynamodb:UpdateItem, dynamodb:DeleteItem",
    when="The condition of a write does not hold",
    code="ConditionalCheckFailedException",
    message="The conditional request failed",
    source="DynamoDB API Reference, PutItem",
)
KEY_EMPTY = Refusal(
    call="dynamodb:PutItem",
    when="A key is an empty text",
    code="ValidationException",
    message="The AttributeValue for a key attribute cannot contain an empty string value. Key: {key}",
    source="DynamoDB Developer Guide, naming rules and data types: strings",
)
EXECUTION_EXISTS = Refusal(
    call="stepfunctions:StartExecution",
    when="Another execution of the state machine has the name, and other input or has ended",
    code="ExecutionAlreadyExists",
    message="Execution Already Exists: '{execution}'",
    source="Step Functions API Reference, StartExecution",
)
STACK_PROTECTED = Refusal(
    call="cloudformation:DeleteStack",
    when="The stack has termination protection",
    code="ValidationError",
    message="Stack [{stack}] cannot be deleted while TerminationProtection is enabled",
    source="CloudFormation User Guide, protect a stack from being deleted",
)
STACK_EXISTS = Refusal(
    call="cloudformation:CreateStack",
    when="A stack has the name already",
    code="AlreadyExistsException",
    message="Stack [{stack}] already exists",
    source="CloudFormation API Reference, CreateStack",
)
NO_UPDATES = Refusal(
    call="cloudformation:UpdateStack",
    when="The template and the parameters are those of the stack",
    code="ValidationError",
    message="No updates are to be performed.",
    source="CloudFormation User Guide, troubleshooting: no updates to perform",
)
BUCKET_NOT_EMPTY = Refusal(
    call="s3:DeleteBucket",
    when="The bucket has objects",
    code="BucketNotEmpty",
    message="The bucket you tried to delete is not empty",
    source="Amazon S3 API Reference, error responses",
)
UPLOAD_UNKNOWN = Refusal(
    call="s3:UploadPart, s3:CompleteMultipartUpload, s3:AbortMultipartUpload",
    when="The upload does not exist: it was aborted or completed",
    code="NoSuchUpload",
    message="The specified {kind} does not exist.",
    source="Amazon S3 API Reference, AbortMultipartUpload",
)
OBJECT_EXISTS = Refusal(
    call="s3:PutObject",
    when="The object must not exist (If-None-Match), and does",
    code="PreconditionFailed",
    message="At least one of the pre-conditions you specified did not hold",
    source="Amazon S3 User Guide, conditional writes",
)
REPOSITORY_EXISTS = Refusal(
    call="ecr:CreateRepository",
    when="A repository has the name already",
    code="RepositoryAlreadyExistsException",
    message="The repository with name '{name}' already exists",
    source="Amazon ECR API Reference, CreateRepository",
)
STATEMENT_EXISTS = Refusal(
    call="lambda:AddPermission",
    when="The policy of the function has a statement with the id",
    code="ResourceConflictException",
    message="The statement id ({id}) provided already exists. Please provide a new statement id, or remove "
    "the existing statement.",
    source="AWS Lambda API Reference, AddPermission: ResourceConflictException",
)
RECORD_EXISTS = Refusal(
    call="route53:ChangeResourceRecordSets",
    when="A record is created that exists",
    code="InvalidChangeBatch",
    message="Tried to create resource record set {record} but it already exists",
    source="Route 53 API Reference, ChangeResourceRecordSets: InvalidChangeBatch",
)
SCHEDULE_EXISTS = Refusal(
    call="scheduler:CreateSchedule",
    when="A schedule of the group has the name",
    code="ConflictException",
    message="Schedule {name} already exists",
    source="EventBridge Scheduler API Reference, CreateSchedule",
)
VOLUME_USED = Refusal(
    call="ec2:DeleteVolume",
    when="An instance has the volume",
    code="VolumeInUse",
    message="{volume} is currently attached",
    source="EC2 API Reference, DeleteVolume and error codes",
)
APPLICATION_EXISTS = Refusal(
    call="kinesisanalyticsv2:CreateApplication",
    when="An application has the name already",
    code="ResourceInUseException",
    message="Application '{name}' already exists.",
    source="Managed Service for Apache Flink API Reference, CreateApplication: ResourceInUseException",
    is_quoted=False,
)
APPLICATION_RUNS = Refusal(
    call="kinesisanalyticsv2:StartApplication",
    when="The application starts or runs already",
    code="ResourceInUseException",
    message="Application cannot be started in '{status}' state",
    source="Managed Service for Apache Flink API Reference, StartApplication: ResourceInUseException",
    is_quoted=False,
)
ADDON_EXISTS = Refusal(
    call="eks:CreateAddon",
    when="The cluster has the add-on",
    code="ResourceInUseException",
    message="Addon already exists",
    source="crossplane-contrib/provider-aws#1310; wandb/terraform-aws-wandb#230",
)
ADDON_CLUSTER = Refusal(
    call="eks:CreateAddon",
    when="There is no such cluster",
    code="ResourceNotFoundException",
    message="No cluster found for name: {name}.",
    source="upbound/configuration-aws-eks#9",
)
SCHEDULE_GROUP = Refusal(
    call="scheduler:CreateSchedule",
    when="There is no such group of schedules",
    code="ResourceNotFoundException",
    message="Schedule group {name} does not exist.",
    source="EventBridge Scheduler API Reference, CreateSchedule: ResourceNotFoundException",
    is_quoted=False,
)
USER_EXISTS = Refusal(
    call="elasticache:CreateUser",
    when="A user has the id already",
    code="UserAlreadyExists",
    message="User {name} already exists",
    source="Amazon ElastiCache API Reference, CreateUser: UserAlreadyExists",
    is_quoted=False,
)
ROTATION_WITHOUT_FUNCTION = Refusal(
    call="secretsmanager:RotateSecret",
    when="Neither the call nor the secret names a function that rotates it",
    code="InvalidRequestException",
    message="No Lambda rotation function ARN is associated with this secret.",
    source="AWS Secrets Manager API Reference, RotateSecret",
    is_quoted=False,
)
ROTATION_NOT_ALLOWED = Refusal(
    call="secretsmanager:RotateSecret, AWS::SecretsManager::RotationSchedule",
    when="The policy of the function does not let Secrets Manager call it",
    code="AccessDeniedException",
    message="Secrets Manager cannot invoke the specified Lambda function. Ensure that the function policy "
    "grants access to the principal secretsmanager.amazonaws.com",
    source="AWS Secrets Manager User Guide, Troubleshoot rotation",
    is_quoted=False,
)
ROTATION_IN_PROGRESS = Refusal(
    call="secretsmanager:RotateSecret, AWS::SecretsManager::RotationSchedule",
    when="Another version has the label AWSPENDING than AWSCURRENT: a rotation runs or was given up",
    code="InvalidRequestException",
    message="A previous rotation isn't complete. That rotation will be reattempted.",
    source="AWS Secrets Manager API Reference, RotateSecret",
    is_quoted=False,
)
SECRET_VALUE_EXISTS = Refusal(
    call="secretsmanager:PutSecretValue",
    when="The version exists with another value",
    code="ResourceExistsException",
    message="You can't use ClientRequestToken {token} because that value is already in use for a version of "
    "secret {arn}.",
    source="AWS Secrets Manager API Reference, PutSecretValue: ClientRequestToken",
    is_quoted=False,
)
SECRET_VERSION_EMPTY = Refusal(
    call="secretsmanager:GetSecretValue",
    when="The version has no value yet, or its rotation has failed",
    code="ResourceNotFoundException",
    message="Secrets Manager can't find the specified secret value for VersionId: {version}",
    source="AWS Secrets Manager API Reference, RotateSecret: an empty secret version",
    is_quoted=False,
)
