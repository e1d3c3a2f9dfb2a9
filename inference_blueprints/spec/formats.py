"""The formats of texts in a blueprint, and their descriptions in messages.

The patterns have the same meaning in JSON Schema and in Rust's and Python's regular expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Kubernetes label values and CloudFormation stack names both take this form.
NAME = r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"
REGION = r"^[a-z]{2}(-[a-z]+)+-[0-9]$"
AVAILABILITY_ZONE = r"^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$"
ACCOUNT_ID = r"^[0-9]{12}$"
CIDR = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$"
INSTANCE_TYPE = r"^[a-z0-9-]+\.[a-z0-9-]+$"
VPC_ID = r"^vpc-[0-9a-f]{8}([0-9a-f]{9})?$"
SUBNET_ID = r"^subnet-[0-9a-f]{8}([0-9a-f]{9})?$"
#: Includes the six characters that Secrets Manager adds to the name: IAM compares the full ARN.
SECRET_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$"  # noqa: S105 (a pattern)
CERTIFICATE_ARN = r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+$"
TOPIC_ARN = r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$"
EMAIL_ADDRESS = r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+$"
DOMAIN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$"
CAPACITY_RESERVATION_ID = r"^cr-[0-9a-f]{8,17}$"
#: Only UTC, which EC2 uses for Capacity Blocks.
UTC_TIME = r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
SNAPSHOT_ID = r"^snap-[0-9a-f]{8}([0-9a-f]{9})?$"
QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
KUBERNETES_VERSION = r"^1\.[0-9]{2}$"
HUGGING_FACE_REPOSITORY = r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$"
REVISION = r"^[A-Za-z0-9_./-]+$"
PARSER_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"
#: With a registry, because runtimes disagree about names without one, and with a tag.
CONTAINER_IMAGE = (
    r"^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
    r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$"
)
#: Characters of keys that S3 calls safe, and of those that may need special handling the ones that teams
#: have in folders, such as Hive's `dt=2026-11-28/` and times with colons (Amazon S3 User Guide, "Naming
#: Amazon S3 objects"). IAM and CloudFormation read `$`, `?`, `{` and `}` themselves.
S3_PREFIX = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([A-Za-z0-9!_.*'()=:@,+/-]*)$"
S3_FOLDER = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/([A-Za-z0-9!_.*'()=:@,+/-]*/)?$"
S3_OBJECT = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9!_.*'(){}=:@,+/-]*\.(jsonl|csv|parquet)$"
#: The six fields of https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html.
CRON_EXPRESSION = r"^[0-9*,/-]+ [0-9*,/-]+ [0-9*,/?LW-]+ [0-9A-Z*,/-]+ [0-9A-Z*,/?L#-]+ [0-9*,/-]+$"
#: The five fields of https://keda.sh/docs/2.20/scalers/cron/.
CRON_TIME = r"^[0-9*,/-]+ [0-9*,/-]+ [0-9*,/?-]+ [0-9A-Z*,/-]+ [0-9A-Z*,/?-]+$"
TIME_ZONE = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"
#: Only roles and users, which last; no sessions and no root.
PRINCIPAL_ARN = r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]{1,576}$"
#: Kafka's own rule (`org.apache.kafka.common.internals.Topic`), without the names of `.` and `..`. The
#: dead-letter topic of a job has its own name.
KAFKA_TOPIC = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
#: Names that a template can read as `event.name`.
EVENT_FIELD = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
BROKER_TYPE = r"^express\.[a-z0-9]+\.[a-z0-9]+$"
MSK_CLUSTER_ARN = r"^arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[A-Za-z0-9-]{1,64}/[a-z0-9-]{1,64}$"
BOOTSTRAP_SERVERS = r"^[A-Za-z0-9.-]{1,253}:[0-9]{1,5}(,[A-Za-z0-9.-]{1,253}:[0-9]{1,5}){0,29}$"
SECURITY_GROUP_ID = r"^sg-[0-9a-f]{8}([0-9a-f]{9})?$"

#: A model's name in requests. No part is `.` or `..`, so that the name is never a path upwards.
PUBLIC_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}([./:][A-Za-z0-9_-]{1,64}){0,7}$"
PROJECT = r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?/([A-Za-z0-9][A-Za-z0-9_-]{0,63}|\*)$"
DOOR_KEY = r"^([0-9A-Za-z]{12}|\*)$"
HTTPS_URL = r"^https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?$"

GGUF_FILE = r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*\.gguf$"
IMAGE_SIZE = r"^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$"

#: Description of each form, for messages and the reference.
DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        PUBLIC_NAME: "letters, digits, hyphens and underscores, with single dots, slashes or colons between",
        PROJECT: "a team, a slash and a project such as ads/search, or ads/* for each project",
        DOOR_KEY: "the 12 letters and digits of a key's id, or * for each key",
        HTTPS_URL: "an address such as https://login.example.com/tenant",
        IMAGE_SIZE: "a width and a height in pixels such as 1024x1024",
        GGUF_FILE: "the path of a file in the repository that ends with .gguf",
        NAME: "up to 40 lower-case letters, digits and inner hyphens, a letter first, such as qwen3-8b",
        REGION: "an AWS region such as us-west-2",
        AVAILABILITY_ZONE: "an availability zone such as us-west-2a",
        ACCOUNT_ID: "the 12 digits of an AWS account, in quotes",
        CIDR: "an IPv4 range such as 10.0.0.0/16",
        INSTANCE_TYPE: "an EC2 instance type such as g6e.2xlarge",
        VPC_ID: "the id of a VPC such as vpc-0a1b2c3d",
        SUBNET_ID: "the id of a subnet such as subnet-0a1b2c3d",
        SECRET_ARN: "the full ARN of a secret, arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-AbCdEf",
        CERTIFICATE_ARN: "the ARN of a certificate, arn:aws:acm:REGION:ACCOUNT:certificate/ID",
        TOPIC_ARN: "the ARN of an SNS topic, arn:aws:sns:REGION:ACCOUNT:NAME",
        EMAIL_ADDRESS: "an e-mail address such as on-call@example.com",
        DOMAIN: "a domain in lower case such as models.example.com",
        CAPACITY_RESERVATION_ID: "the id of a capacity reservation or block such as cr-0a1b2c3d",
        UTC_TIME: "a time in UTC, in quotes, such as '2026-12-01T11:30:00Z'",
        SNAPSHOT_ID: "the id of a snapshot such as snap-0a1b2c3d",
        QUALIFIED_NAME: "a Kubernetes key such as team or example.com/team",
        LABEL_VALUE: "up to 63 letters, digits, hyphens, underscores and dots, such as ads",
        KUBERNETES_VERSION: 'a Kubernetes version in quotes such as "1.35"',
        HUGGING_FACE_REPOSITORY: "a Hugging Face repository, ORGANISATION/MODEL",
        REVISION: "a commit, branch or tag of the repository",
        PARSER_NAME: "the name of a parser such as qwen3, or none",
        CONTAINER_IMAGE: "an image with registry and tag such as registry.example.com/vllm-runtime:1.6.1",
        S3_PREFIX: "an S3 prefix such as s3://bucket/folder/",
        S3_FOLDER: "an S3 prefix that ends with a slash such as s3://bucket/folder/",
        S3_OBJECT: "an S3 object such as s3://bucket/folder/{date}.jsonl, or .csv or .parquet",
        CRON_EXPRESSION: "six fields in quotes such as '0 6 * * ? *'",
        CRON_TIME: "five fields in quotes such as '0 7 * * 1-5'",
        TIME_ZONE: "a time zone such as Europe/Berlin",
        PRINCIPAL_ARN: "the ARN of an IAM role or user such as arn:aws:iam::111122223333:role/ads",
        KAFKA_TOPIC: "the name of a Kafka topic such as clicks",
        EVENT_FIELD: "the name of a field such as shopper",
        BROKER_TYPE: "a size of MSK's Express brokers such as express.m7g.large",
        MSK_CLUSTER_ARN: "the ARN of an MSK cluster, arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID",
        BOOTSTRAP_SERVERS: "HOST:PORT of brokers with commas between them",
        SECURITY_GROUP_ID: "the id of a security group such as sg-0a1b2c3d",
    }
)

#: What buckets are that general purpose buckets cannot be named like (Amazon S3 User Guide, "General purpose
#: bucket naming rules"), by the end of their names.
_OTHER_BUCKETS: Mapping[str, str] = MappingProxyType(
    {
        # "Authenticating and authorizing requests" for directory buckets: reading needs a session, which
        # `s3express:CreateSession` on the whole bucket allows; `s3:GetObject` on a prefix allows nothing.
        "--x-s3": "a directory bucket of S3 Express One Zone. Its objects are read in sessions that "
        "s3express:CreateSession allows on the whole bucket, and the platform's policies allow s3: actions "
        "on a prefix",
        "-s3alias": "the alias of an access point, and the platform's policies name buckets",
        "--ol-s3": "the alias of an Object Lambda access point, and the platform's policies name buckets",
        ".mrap": "a Multi-Region Access Point, and the platform's policies name buckets",
        "--table-s3": "a bucket of S3 Tables, which has no prefixes",
    }
)


def bucket_problem(address: str) -> str:
    """Return why the platform cannot read from an address's bucket, as a phrase; empty if it can.

    address: Such as ``s3://bucket/folder/``.
    """
    bucket = str(address).removeprefix("s3://").partition("/")[0]
    return next((problem for end, problem in _OTHER_BUCKETS.items() if bucket.endswith(end)), "")
