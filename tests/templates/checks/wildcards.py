"""No policy says more than it has to: every wildcard of every template is listed here with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.templates.support import Templates, listed, statements, text

_EC2_STARTS = "RunInstances|CreateFleet|CreateLaunchTemplate|CreateTags"
_EC2_ENDS = "TerminateInstances|DeleteLaunchTemplate"
_BAKES = "RunInstances|CreateTags|(Stop|Terminate)Instances|(Create|Delete)Snapshot"
_PROFILE = r"arn:aws:iam::.+:instance-profile/\*"
_BUCKET = r"\$\{(Batch|DoorAudit|DoorUsage|KvCache|Logs|SignalHistory|Weights)\w+\.Arn\}"
_TARGETS = "arn:aws:elasticloadbalancing:.+:targetgroup"
_COPIES = "GetObject|PutObject|AbortMultipartUpload"
_REGION = "[a-z0-9-]+"

#: Reason → stack and patterns of ``action on resource``.
REASONS: dict[str, list[tuple[str, str]]] = {
    "the resources do not exist yet; a condition bounds them to the cluster's tags": [
        ("Cluster", rf"ec2:({_EC2_STARTS}) on arn:aws:ec2:.+/\*"),
        ("Cluster", rf"ec2:({_EC2_ENDS}) on arn:aws:ec2:.+/\*"),
        ("Operations", r"ec2:RebootInstances on arn:aws:ec2:.+:instance/\*"),
        ("Cluster", rf"iam:\w+InstanceProfile on {_PROFILE}"),
        ("Platform", rf"elasticloadbalancing:\w+Targets on {_TARGETS}/\*"),
    ],
    "the resources do not exist yet; the launch template or the tags of a bake bound them": [
        ("ImageCache", rf"ec2:({_BAKES}) on arn:aws:ec2:.+/\*"),
        ("ImageCache", r"ssm:SendCommand on arn:aws:ec2:.+:instance/\*"),
    ],
    "the calls know no resources; a condition bounds them to the region or the cluster": [
        ("Cluster", r"(ec2:Describe\w+|arc-zonal-shift:GetManagedResource) on \*"),
        ("Platform", r"(ec2|elasticloadbalancing):Describe\w+ on \*"),
        ("ImageCache", r"(ec2:Describe\w+|ssm:GetCommandInvocation) on \*"),
        ("Observability", r"(ec2:Describe\w+|cloudwatch:PutMetricData|xray:Put\w+) on \*"),
        ("Operations", r"cloudwatch:(GetMetricData|ListMetrics|DescribeAlarmContributors) on \*"),
        ("Operations", r"ec2:DescribeCapacityReservations on \*"),
        ("Operations", r"application-autoscaling:DescribeScalableTargets on \*"),
        ("Streaming", r"ec2:Describe\w+ on \*"),
    ],
    "Application Auto Scaling chooses the ARNs of scalable targets; the tag of the platform bounds them": [
        (
            "Operations",
            r"application-autoscaling:RegisterScalableTarget"
            r" on arn:aws:application-autoscaling:.+:scalable-target/\*",
        ),
    ],
    "Application Auto Scaling checks them without the name of an alarm; each named one is denied": [
        ("Operations", r"cloudwatch:(PutMetricAlarm|DeleteAlarms) on \*"),
    ],
    "lists of log groups, which know no single one": [
        ("Streaming", rf"logs:DescribeLog(Groups|Streams) on arn:aws:logs:{_REGION}:.+:log-group:\*"),
    ],
    "network interfaces that the service makes and names; subnets, or the VPC as a condition, bound them": [
        (
            "Streaming",
            rf"ec2:\w+NetworkInterface(Permission)? on arn:aws:ec2:{_REGION}:.+:network-interface/\*",
        ),
    ],
    "the job's program, configuration and history, whose names nobody knows beforehand": [
        (
            "Streaming",
            r"s3:\w+ on arn:aws:s3:::\$\{[\w.-]+\}"
            r"/streaming-(programs|configuration(/[\w-]+)?|history/[\w-]+)/\*",
        ),
        (
            "Streaming",
            r"s3:PutObject on arn:aws:s3:::\$\{[\w.-]+\}"
            r"/streaming-history/[\w-]+/date=\*/hour=\*/redriven-\*",
        ),
    ],
    "tasks of the workers' own cluster, whose IDs nobody knows beforehand": [
        (
            "Batch",
            rf"ecs:UpdateTaskProtection on arn:aws:ecs:{_REGION}:.+:task/\$\{{WorkerCluster\w+\}}/\*",
        ),
    ],
    "hosts and tasks of the platform's cluster, which get names when they run; a condition bounds the list": [
        ("Operations", r"ecs:ListTasks on \*"),
        (
            "Operations",
            rf"ecs:Describe(ContainerInstances|Tasks) on arn:aws:ecs:{_REGION}:.+"
            r":(container-instance|task)/[\w-]+/\*",
        ),
    ],
    "lists of alarms, which AWS checks against all alarms of the region": [
        ("Operations", rf"cloudwatch:DescribeAlarms on arn:aws:cloudwatch:{_REGION}:.+:alarm:\*"),
    ],
    "sessions of Session Manager on nodes, whose calls know no resources": [
        ("Cluster", r"(ssm:UpdateInstanceInformation|ssmmessages:\w+) on \*"),
    ],
    "public parameters and prices, and a listing that knows no resources": [
        ("Cluster", r"pricing:GetProducts on \*"),
        ("Cluster", rf"ssm:GetParameter on arn:aws:ssm:{_REGION}::parameter/aws/service/\*"),
        ("Cluster", r"iam:ListInstanceProfiles on \*"),
    ],
    "the delivery of logs, whose calls know no resources": [
        ("ImageCache", r"logs:\w+ on \*"),
        ("Batch", r"logs:\w+ on \*"),
    ],
    "network interfaces, which Lambda makes for a function and names itself": [
        ("Batch", r"ec2:\w+(NetworkInterfaces?|PrivateIpAddresses|Subnets) on \*"),
        ("Observability", r"ec2:\w+(NetworkInterfaces?|PrivateIpAddresses) on \*"),
        ("Operations", r"ec2:\w+(NetworkInterfaces?|PrivateIpAddresses|Subnets) on \*"),
        ("Streaming", r"ec2:\w+(NetworkInterfaces?|PrivateIpAddresses|Subnets) on \*"),
    ],
    "log streams, which CDK names": [
        ("FrontDoor", r"logs:PutLogEvents on \$\{UsageLog\w+\.Arn\}:log-stream:\*"),
    ],
    "log streams, whose names begin with a node's name": [
        (
            "Observability",
            rf"logs:\w+ on arn:aws:logs:{_REGION}:.+:log-group:/aws/containerinsights/try/\w+:\*",
        ),
    ],
    "jobs, their executions and what teams name have names that nobody knows beforehand": [
        ("Batch", r"s3:\w+ on arn:aws:s3:::\$\{[\w.-]+\}/(jobs|files|uploads|signals|queue-\d|night)/.*"),
        ("Data", rf"s3:PutObject on {_BUCKET}/queue-\d/(ads|search)/\*"),
        ("Batch", r"s3:GetObject on arn:aws:s3:::(ads-data|search-data|all/a)/\*"),
        ("Batch", rf"states:\w+ on arn:aws:states:{_REGION}:.+:(execution:.+:\*|mapRun:.+/\*)"),
    ],
    "a shard is a child execution, whose machine is `name/label`; both spellings of its ARN are allowed": [
        ("Batch", r"states:SendTask\w+ on \$\{JobsStateMachine\w+\}/\*"),
    ],
    "the token of a registry, which knows no resource": [
        ("Batch", r"ecr:GetAuthorizationToken on \*"),
        ("FrontDoor", r"ecr:GetAuthorizationToken on \*"),
    ],
    "objects have no names beforehand; the bucket or the prefix bounds them": [
        ("Cluster", r"s3:GetObject on arn:aws:s3:::cdk-hnb659fds-assets-.+/\*\.zip"),
        ("FrontDoor", r"s3:\w+ on arn:aws:s3:::\$\{[\w.-]+\}/usage(-errors)?/\*"),
        ("FrontDoor", r"s3:PutObject on arn:aws:s3:::\$\{[\w.-]+\}/administration/\*"),
        ("PlatformKeys", r"s3:PutObject on arn:aws:s3:::\$\{[\w.-]+\}/administration/\*"),
        ("FrontDoor", r"s3:\w+\*? on \$\{WatchedConfiguration\w+\.Arn\}(/\*)?"),
        ("Data", rf"s3:\w+ on {_BUCKET}.*\*"),
        ("Data", rf"s3:(GetBucket|List|DeleteObject)\* on {_BUCKET}.*"),
        ("Model", rf"s3:\w+ on {_BUCKET}.*\*"),
        ("Model", rf"s3:(GetBucket|List|DeleteObject)\* on {_BUCKET}.*"),
        ("Model", r"s3:GetObject on arn:aws:s3:::acme-models/[\w./-]+/\*"),
        ("Model", rf"s3:({_COPIES}) on arn:aws:s3:::\$\{{[\w.-]+\}}/huggingface/[\w./-]+/[0-9a-f]{{40}}/\*"),
        ("Model", rf"s3:({_COPIES}) on arn:aws:s3:::\$\{{[\w.-]+\}}/neuron/[0-9a-f]{{32}}/\*"),
    ],
    "whatever key the owner chose; the encryption context bounds it to the objects or the secret": [
        ("Model", rf"kms:(Decrypt|GenerateDataKey) on arn:aws:kms:{_REGION}:.+:key/\*"),
    ],
    "whatever key a team chose for its bucket, also in another account, whose key policy must allow it; "
    "conditions bound it to S3 and to the buckets of the teams": [
        ("Batch", rf"kms:Decrypt on arn:aws:kms:{_REGION}:\*:key/\*"),
    ],
    "a key policy that leaves the decision to the account's policies; the resource is the key itself": [
        ("Data", r"kms:(\*|GenerateDataKey) on \*"),
        ("Monitoring", r"kms:(\*|Decrypt|GenerateDataKey\*) on \*"),
        ("Operations", r"kms:(\*|Decrypt|GenerateDataKey\*) on \*"),
        ("Streaming", r"kms:(\*|Decrypt|GenerateDataKey\*) on \*"),
        ("Data", r"kms:(Encrypt|Decrypt|ReEncrypt\*|GenerateDataKey\*|DescribeKey) on \*"),
    ],
    "data keys of the topic's key, whose calls differ only in whether they return the plain key": [
        ("Operations", r"kms:GenerateDataKey\* on \$\{PeopleKey\w+\.Arn\}"),
    ],
    "versions of one function": [
        ("Cluster", r"lambda:\w+ on \$\{Cluster\w+\.Arn\}:\*"),
    ],
}
ALLOWED = [each for group in REASONS.values() for each in group]


def wildcards(templates: Templates) -> Iterator[tuple[str, str]]:
    """Yield stack, and ``action on resource`` for each grant with a wildcard in either."""
    for stack, template in templates.by_stack.items():
        for resource in template["Resources"].values():
            for statement in statements(resource):
                if statement["Effect"] == "Allow":
                    for action in listed(statement["Action"]):
                        for target in map(text, listed(statement["Resource"])):
                            if "*" in action or "*" in target:
                                yield stack, f"{action} on {target}"


def unexplained_wildcards(templates: Templates) -> list[tuple[str, str]]:
    """Return stack and grant of each wildcard that has no reason here."""
    return [(stack, grant) for stack, grant in wildcards(templates) if not _is_allowed(stack, grant)]


def _is_allowed(stack: str, grant: str) -> bool:
    return any(stack.startswith(where) and re.fullmatch(pattern, grant) for where, pattern in ALLOWED)
