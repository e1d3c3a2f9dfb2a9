"""What AWS refuses for the settings of a resource alone, where the schemas of the types leave it out."""

from __future__ import annotations

from inference_local.emulator import property_checks as checks
from inference_local.emulator import refusal_checks
from inference_local.emulator.refusals import Refusal

ROLE_POLICIES = Refusal(
    call="iam:PutRolePolicy, AWS::IAM::Policy, AWS::IAM::Role",
    when="The policies that are part of a role have more than 10,240 characters without white space",
    code="LimitExceeded",
    message="Maximum policy size of 10240 bytes exceeded for role {role}",
    source="IAM User Guide, IAM and AWS STS quotas; aws/aws-cdk#4465",
    check=checks.long_policies,
)
TRUST_SIZE = Refusal(
    call="iam:CreateRole, iam:UpdateAssumeRolePolicy, AWS::IAM::Role",
    when="The policy that says who may take a role has more than 2,048 characters, the default quota",
    code="LimitExceeded",
    message="Cannot exceed quota for ACLSizePerRole: 2048",
    source="IAM User Guide, IAM and AWS STS quotas",
    check=checks.long_trust,
)
KEY_LOST = Refusal(
    call="kms:CreateKey, kms:PutKeyPolicy, AWS::KMS::Key",
    when="Nobody may change the policy of a key afterwards",
    code="MalformedPolicyDocumentException",
    message="The new key policy will not allow you to update the key policy in the future.",
    source="AWS KMS API Reference, CreateKey; terraform-aws-modules/terraform-aws-eks#2843",
    check=checks.lost_key,
)
RANGE_SIZE = Refusal(
    call="ec2:CreateSubnet, ec2:CreateVpc, AWS::EC2::Subnet, AWS::EC2::VPC",
    when="The range of a VPC or a subnet is larger than /16 or smaller than /28",
    code="InvalidSubnet.Range",
    message="The CIDR '{block}' is invalid.",
    source="Amazon VPC User Guide, subnet CIDR blocks",
    check=checks.small_cidr,
)
USER_DATA = Refusal(
    call="ec2:CreateLaunchTemplate, ec2:RunInstances, AWS::EC2::LaunchTemplate",
    when="The user data of an instance is larger than 16 KB before it is encoded",
    code="InvalidUserData.Malformed",
    message="User data is limited to 16384 bytes",
    source="Amazon EC2 User Guide, run commands at launch; banzaicloud/pipeline#453",
    check=checks.large_user_data,
)
GROUP_SIZE = Refusal(
    call="autoscaling:CreateAutoScalingGroup, AWS::AutoScaling::AutoScalingGroup",
    when="The desired number of instances is not between minimum and maximum",
    code="ValidationError",
    message="Desired capacity:{wanted} must be between the specified min size:{least} and max size:{most}",
    source="EC2 Auto Scaling API Reference, CreateAutoScalingGroup",
    check=checks.wrong_asg_size,
)
NODE_GROUP_SIZE = Refusal(
    call="eks:CreateNodegroup, eks:UpdateNodegroupConfig, AWS::EKS::Nodegroup",
    when="The desired number of nodes is not between minimum and maximum",
    code="InvalidParameterException",
    message="Minimum capacity {least}, desired size {wanted} and maximum capacity {most} do not fit",
    source="EKS API Reference, NodegroupScalingConfig",
    check=checks.wrong_group_size,
    is_quoted=False,
)
NODE_GROUP_DISK = Refusal(
    call="eks:CreateNodegroup, AWS::EKS::Nodegroup",
    when="A node group with a launch template has a size of its disk too",
    code="InvalidParameterException",
    message="Disk size must be specified within the launch template.",
    source="EKS API Reference, CreateNodegroup; crossplane-contrib/provider-upjet-aws#866",
    check=checks.disk_beside_template,
)
TARGET_SIZE = Refusal(
    call="application-autoscaling:RegisterScalableTarget, AWS::ApplicationAutoScaling::ScalableTarget",
    when="The minimum of a scalable target is above its maximum",
    code="ValidationException",
    message="Maximum capacity cannot be less than minimum capacity",
    source="Application Auto Scaling API Reference, RegisterScalableTarget",
    check=checks.wrong_target,
    is_quoted=False,
)
SCHEDULE_FORM = Refusal(
    call="events:PutRule, AWS::Events::Rule",
    when=(
        "An expression is no rate of a positive whole number and no cron with six fields, of which one "
        "day is ?"
    ),
    code="ValidationException",
    message="Parameter ScheduleExpression is not valid.",
    source="Amazon EventBridge User Guide, cron and rate expressions",
    check=checks.wrong_schedule,
)
SCHEDULER_FORM = Refusal(
    call="scheduler:CreateSchedule, scheduler:UpdateSchedule, AWS::Scheduler::Schedule",
    when="An expression is no rate, cron or time, or a field of a cron is out of its bounds",
    code="ValidationException",
    message="Invalid Schedule Expression {expression}.",
    source="EventBridge Scheduler User Guide, schedule types; localstack/localstack, "
    "test_scheduler.snapshot.json, recorded from AWS",
    check=checks.wrong_schedule,
)
TRANSITION_DAYS = Refusal(
    call="AWS::S3::Bucket",
    when="Objects go to a class of infrequent access before 30 days",
    code="InvalidArgument",
    message="'Days' in Transition action must be greater than or equal to 30 for storageClass '{kind}'",
    source="Amazon S3 User Guide, transitioning objects; hashicorp/terraform-provider-aws#6201",
    check=checks.wrong_lifecycle,
)
LIFECYCLE_ID = Refusal(
    call="AWS::S3::Bucket",
    when="Two rules of a life cycle have the same id",
    code="InvalidArgument",
    message="Rule ID must be unique. Found same ID for more than one rule",
    source="Amazon S3 User Guide, lifecycle configuration elements",
    check=checks.doubled_lifecycle,
)
OBJECT_LOCK = Refusal(
    call="AWS::S3::Bucket",
    when="Objects are locked by default, and the bucket is made without Object Lock",
    code="InvalidBucketState",
    message="Object Lock configuration cannot be enabled on existing buckets",
    source="CloudFormation Template Reference, AWS::S3::Bucket, ObjectLockEnabled; "
    "hashicorp/terraform-provider-awscc#366",
    check=checks.lock_of_plain_bucket,
)
DELIVERY_ERRORS = Refusal(
    call="firehose:CreateDeliveryStream, AWS::KinesisFirehose::DeliveryStream",
    when="The prefix of delivered objects has expressions, and there is no prefix for errors",
    code="InvalidArgumentException",
    message=(
        "Ths supplied prefix(es) do not satisfy the following constraint: ErrorOutputPrefix cannot be null "
        "or empty when Prefix contains expressions"
    ),
    source="Amazon Data Firehose Developer Guide, custom prefixes for Amazon S3 objects; "
    "hashicorp/terraform-provider-aws#13416, serverless/serverless#6015",
    check=checks.missing_error_prefix,
)
ATTRIBUTES_OF_KEYS = Refusal(
    call="dynamodb:CreateTable, AWS::DynamoDB::Table, AWS::DynamoDB::GlobalTable",
    when="The defined attributes are not those of the keys of table and indexes",
    code="ValidationException",
    message=(
        "One or more parameter values were invalid: Number of attributes in KeySchema does not exactly "
        "match number of attributes defined in AttributeDefinitions"
    ),
    source="DynamoDB API Reference, CreateTable",
    check=checks.unused_attribute,
)
CONTAINER_NAMES = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="Two containers of a task have the same name",
    code="ClientException",
    message="Container.name should be unique in a task: {name}",
    source="ECS API Reference, ContainerDefinition, name",
    check=checks.doubled_container,
    is_quoted=False,
)
CONTAINER_ESSENTIAL = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="No container of a task is essential",
    code="ClientException",
    message="Task definition does not have any essential containers",
    source="ECS API Reference, ContainerDefinition, essential",
    check=checks.not_essential,
    is_quoted=False,
)
CONTAINER_PORTS = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="In a network of its own, a task has a port of the host that is not the container's",
    code="ClientException",
    message="When networkMode=awsvpc, the host ports and container ports in port mappings must match.",
    source="ECS API Reference, PortMapping, hostPort; aws/amazon-ecs-cli#1014",
    check=checks.wrong_host_port,
)
CONTAINER_CHECK = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="A setting of a container's health check is out of its bounds",
    code="ClientException",
    message="{what} must be between {least} and {most}",
    source="ECS API Reference, HealthCheck",
    check=checks.wrong_container_check,
    is_quoted=False,
)
FARGATE_SIZE = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="Fargate has no task with these CPU units and this memory",
    code="ClientException",
    message="No Fargate configuration exists for given values: {units} CPU, {memory} memory.",
    source="ECS Developer Guide, task CPU and memory; towardsthecloud/aws-cdk-examples#1",
    check=checks.wrong_fargate_size,
)
DASHBOARD_BODY = Refusal(
    call="cloudwatch:PutDashboard, AWS::CloudWatch::Dashboard",
    when="A dashboard is no JSON, or has more than 500 widgets",
    code="InvalidParameterInput",
    message="The field DashboardBody {reason}",
    source="CloudWatch API Reference, PutDashboard; CloudWatch service quotas",
    check=checks.many_widgets,
    is_quoted=False,
)
PARAMETER_SIZE = Refusal(
    call="ssm:PutParameter, AWS::SSM::Parameter",
    when="The value of a standard parameter has more than 4,096 characters",
    code="ValidationException",
    message=(
        "Standard tier parameters support a maximum parameter value of 4096 characters. To create a "
        "larger parameter value, upgrade the parameter to use the advanced-parameter tier."
    ),
    source="AWS Systems Manager User Guide, parameter tiers",
    check=checks.long_parameter,
)
PATH_PART = Refusal(
    call="apigateway:CreateResource, AWS::ApiGateway::Resource",
    when="A part of a path has other characters than API Gateway allows",
    code="BadRequestException",
    message=(
        "Resource's path part only allow a-zA-Z0-9._-: or a valid greedy path variable and curly braces "
        "at the beginning and the end."
    ),
    source="API Gateway REST API Reference, CreateResource",
    check=checks.wrong_path_part,
)
API_TIMEOUT = Refusal(
    call="apigateway:PutIntegration, AWS::ApiGateway::Method",
    when="The time for an answer of the backend is not 50 ms to 29 s, the default quota",
    code="BadRequestException",
    message="Timeout should be between 50 ms and 29000 ms",
    source="Amazon API Gateway Developer Guide, quotas for REST APIs",
    check=checks.wrong_api_timeout,
)
MESSAGE_SIZE = Refusal(
    call="sns:Publish",
    when="A message is larger than 256 KB",
    code="InvalidParameter",
    message="Invalid parameter: Message too long",
    source="Amazon SNS API Reference, Publish",
    check=checks.large_message,
)
MESSAGE_SUBJECT = Refusal(
    call="sns:Publish",
    when="A subject is empty, has more than 100 characters or several lines",
    code="InvalidParameter",
    message="Invalid parameter: Subject",
    source="Amazon SNS API Reference, Publish, Subject",
    check=checks.long_subject,
)
QUEUE_BOUNDS = Refusal(
    call="sqs:CreateQueue, sqs:SetQueueAttributes, AWS::SQS::Queue",
    when="A setting of a queue is out of its bounds",
    code="InvalidAttributeValue",
    message="Invalid value for the parameter {name}.",
    source="Amazon SQS API Reference, SetQueueAttributes",
    check=checks.wrong_queue,
)
CLUSTER_SUBNETS = Refusal(
    call="eks:CreateCluster, AWS::EKS::Cluster",
    when="The subnets of a cluster are not in two zones",
    code="InvalidParameterException",
    message="Subnets specified must be in at least two different AZs",
    source="awsdocs/amazon-eks-user-guide#795; WesleyCharlesBlake/terraform-aws-eks#41",
    check=checks.few_cluster_subnets,
)
CLUSTER_ADMINISTRATOR = Refusal(
    call="eks:CreateCluster, AWS::EKS::Cluster",
    when="A cluster without access entries does not let its creator in",
    code="InvalidParameterException",
    message="bootstrapClusterCreatorAdminPermissions must be true if cluster authentication mode is set to "
    "CONFIG_MAP",
    source="terraform-aws-modules/terraform-aws-eks#3206",
    check=checks.no_administrator,
)
VERSION_SKIPPED = Refusal(
    call="eks:UpdateClusterVersion, update of AWS::EKS::Cluster",
    when="The update skips a minor version of Kubernetes, or goes back to an earlier one",
    code="InvalidParameterException",
    message="Unsupported Kubernetes minor version update from {old} to {new}",
    source="terraform-aws-modules/terraform-aws-eks#2607; rancher/rancher#43316",
    change=checks.skipped_version,
)
AUTHENTICATION_MODE = Refusal(
    call="eks:UpdateClusterConfig, update of AWS::EKS::Cluster",
    when="The update takes access entries away, or skips the mode with both entries and ConfigMap",
    code="InvalidParameterException",
    message="Unsupported authentication mode update from {old} to {new}",
    source="pulumi/pulumi-eks#1493; aws/aws-cdk#31032",
    change=checks.authentication_taken_back,
)
TYPE_AND_STRATEGY = Refusal(
    call="ecs:CreateService, AWS::ECS::Service",
    when="A service has a launch type and a strategy of capacity providers",
    code="InvalidParameterException",
    message="Specifying both a launch type and capacity provider strategy is not supported. Remove one and "
    "try again.",
    source="terraform-linters/tflint-ruleset-aws#349",
    check=checks.type_and_strategy,
)
DAEMON_STRATEGY = Refusal(
    call="ecs:CreateService, AWS::ECS::Service",
    when="A service with one task per host has a strategy of capacity providers",
    code="InvalidParameterException",
    message="Specifying a capacity provider strategy is not supported when you create a service using the "
    "DAEMON scheduling strategy.",
    source="aws/containers-roadmap#692",
    check=checks.daemon_strategy,
)
FARGATE_LOG_ROLE = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="A task on Fargate writes logs to CloudWatch and has no execution role",
    code="ClientException",
    message="Fargate requires task definition to have execution role ARN to support log driver awslogs.",
    source="aws/aws-cdk#1279; virtual-kubelet/virtual-kubelet#193",
    check=checks.fargate_log_role,
)
FARGATE_NETWORK = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="A task on Fargate has no network of its own",
    code="ClientException",
    message="Fargate only supports network mode \N{LEFT SINGLE QUOTATION MARK}awsvpc"
    "\N{RIGHT SINGLE QUOTATION MARK}.",
    source="aws/amazon-ecs-cli#1145",
    check=checks.fargate_network,
)
SECRETS_ROLE = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="A container has secrets, and the task has no execution role",
    code="ClientException",
    message="When you are specifying container secrets, you must also specify a value for "
    "'executionRoleArn'.",
    source="fabfuel/ecs-deploy#87",
    check=checks.secrets_role,
)
SECRET_NAME = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="A container has a secret and a variable, or two secrets, of the same name",
    code="ClientException",
    message="The secret name must be unique and not shared with any new or existing environment variables "
    "set on the container, such as '{name}'.",
    source="dagster-io/dagster#11622; compose-x/ecs_composex#707",
    check=checks.shared_secret_name,
)
CONTAINER_MEMORY = Refusal(
    call="ecs:RegisterTaskDefinition, AWS::ECS::TaskDefinition",
    when="Neither a task nor one of its containers has a memory",
    code="ClientException",
    message="Invalid setting for container '{name}'. At least one of 'memory' or 'memoryReservation' must "
    "be specified.",
    source="sil-org/ecs-deploy#59; cuttlesoft/ecs-deploy.py#17",
    check=checks.container_memory,
)
ONE_INDEX = Refusal(
    call="dynamodb:UpdateTable, update of AWS::DynamoDB::Table, update of AWS::DynamoDB::GlobalTable",
    when="An update makes or deletes more than one index of a table",
    code="ValidationException",
    message="Cannot perform more than one GSI creation or deletion in a single update",
    source="aws/aws-cdk#14920; aws-cloudformation/cloudformation-coverage-roadmap#229",
    change=refusal_checks.several_indexes,
)
INDEX_THROUGHPUT = Refusal(
    call="dynamodb:CreateTable, AWS::DynamoDB::Table",
    when="An index of a table on demand has a throughput",
    code="ValidationException",
    message="One or more parameter values were invalid: ProvisionedThroughput should not be specified for "
    "index: {name} when BillingMode is PAY_PER_REQUEST",
    source="awslabs/aws-lambda-redshift-loader#192",
    check=refusal_checks.index_throughput,
)
UNEVEN_BROKERS = Refusal(
    call="kafka:CreateCluster, AWS::MSK::Cluster",
    when="The number of brokers is no multiple of the number of zones, each of which has a subnet",
    code="BadRequestException",
    message="The number of broker nodes must be a multiple of Availability Zones in the Subnets parameter.",
    source="Amazon MSK Developer Guide, create a cluster; hashicorp/terraform-provider-aws#9658",
    check=refusal_checks.uneven_brokers,
    is_quoted=False,
)
