"""What ElastiCache Serverless, Data Firehose and Managed Service for Apache Flink refuse.

Some rows compare a request with what the emulator has: users of caches, and programs in buckets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ministack.services import codebuild, elasticache, s3

from inference_local.emulator.managed_refusals import untrusted
from inference_local.emulator.refusal_checks import KIB, Values
from inference_local.emulator.refusals import Refusal

# --- Data Firehose. ---

_MOST_BYTES: Final = 4 * 1024 * KIB


def _large_delivery(given: Values) -> Values | None:
    """Firehose: records count as they are before base64, which a request has."""
    texts = (str(each.get("Data", "")) for each in given.get("Records") or ())
    return {} if sum(len(text) * 3 // 4 for text in texts) > _MOST_BYTES else None


DELIVERY_SIZE = Refusal(
    call="firehose:PutRecordBatch",
    when="The records of a call have more than 4 MiB together",
    code="InvalidArgumentException",
    message="Records size exceeds 4 MB limit",
    source="Amazon Data Firehose API Reference, PutRecordBatch; osquery/osquery#3568",
    check=_large_delivery,
)

# --- ElastiCache Serverless. ---

_CACHE: Final = (
    "elasticache:CreateServerlessCache, elasticache:ModifyServerlessCache, AWS::ElastiCache::ServerlessCache"
)
_NEW_CACHE: Final = "elasticache:CreateServerlessCache, AWS::ElastiCache::ServerlessCache"
#: Amazon ElastiCache User Guide, supported engines and versions of serverless caches.
_VERSIONS: Final = {"valkey": ("7", "8", "9"), "redis": ("7",), "memcached": ("1.6",)}
_LONGEST_CACHE: Final = 40
_MOST_USERS: Final = 100
_MOST_SNAPSHOTS: Final = 35


def _limits(given: Values, name: str) -> Iterator[int]:
    found = (given.get("CacheUsageLimits") or {}).get(name) or {}
    for each in ("Minimum", "Maximum"):
        if found.get(each) not in (None, "", 0, "0"):
            yield int(found[each])


def _wrong_units(given: Values) -> Values | None:
    return next(
        ({} for each in _limits(given, "ECPUPerSecond") if not 1000 <= each <= 15_000_000),  # noqa: PLR2004
        None,
    )


def _wrong_storage(given: Values) -> Values | None:
    found = _limits(given, "DataStorage")
    return next(({"size": each} for each in found if not 1 <= each <= 5000), None)  # noqa: PLR2004


def _cache_names(given: Values) -> Iterator[tuple[str, str]]:
    for name in ("ServerlessCacheName", "UserGroupId", "UserId", "FinalSnapshotName"):
        if isinstance(given.get(name), str):
            yield name, given[name]


def _wrong_cache_name(given: Values) -> Values | None:
    for name, text in _cache_names(given):
        if not re.fullmatch(r"[a-zA-Z](-?[a-zA-Z0-9])*", text):
            return {"name": name}
    return None


def _long_cache_name(given: Values) -> Values | None:
    for name, text in _cache_names(given):
        if name != "FinalSnapshotName" and len(text) > _LONGEST_CACHE:
            return {"name": name, "most": _LONGEST_CACHE}
    return None


def _wrong_cache_subnets(given: Values) -> Values | None:
    subnets = given.get("SubnetIds")
    return {"count": len(subnets)} if subnets and len(subnets) not in (2, 3) else None


def _wrong_cache_version(given: Values) -> Values | None:
    engine, version = str(given.get("Engine")), given.get("MajorEngineVersion")
    known = _VERSIONS.get(engine)
    if known is None:
        return {"engine": engine, "version": version or ""}
    return {"engine": engine, "version": version} if version and str(version) not in known else None


def _many_snapshots(given: Values) -> Values | None:
    kept = given.get("SnapshotRetentionLimit")
    return {"most": _MOST_SNAPSHOTS} if kept is not None and not 0 <= int(kept) <= _MOST_SNAPSHOTS else None


def _unknown_user_group(given: Values) -> Values | None:
    name = given.get("UserGroupId")
    return {"name": name} if name and name not in elasticache._user_groups else None


def _unknown_user(given: Values) -> Values | None:
    users = given.get("UserIds") or ()
    absent = [name for name in users if name != "default" and name not in elasticache._users]
    return {"name": absent[0]} if absent else None


def _no_default_user(given: Values) -> Values | None:
    if given.get("Engine") != "redis":
        return None
    users = [elasticache._users.get(each) or {"UserName": each} for each in given.get("UserIds") or ()]
    return {} if "default" not in [each.get("UserName") for each in users] else None


def _doubled_user(given: Values) -> Values | None:
    users = [elasticache._users.get(each) or {"UserName": each} for each in given.get("UserIds") or ()]
    names = [each.get("UserName") for each in users]
    return {} if len(names) > len(set(names)) else None


def _open_user(given: Values) -> Values | None:
    mode = (given.get("AuthenticationMode") or {}).get("Type")
    is_open = mode == "no-password-required" or str(given.get("NoPasswordRequired")).lower() == "true"
    return {} if given.get("Engine") == "valkey" and is_open else None


def _engine_taken_back(before: Values, after: Values) -> Values | None:
    old, new = (
        (str(each.get("Engine")), str(each.get("MajorEngineVersion") or "")) for each in (before, after)
    )
    is_back = old[0] != new[0] and (old[0], new[0]) != ("redis", "valkey")
    is_lower = old[0] == new[0] and old[1] and new[1] and float(new[1]) < float(old[1])
    return {"old": " ".join(old), "new": " ".join(new)} if is_back or is_lower else None


CACHE_UNITS = Refusal(
    call=_CACHE,
    when="A limit of ElastiCache processing units of a cache is not 1,000 to 15,000,000 per second",
    code="InvalidParameterValue",
    message="Invalid value for ECPUPerSecond limit. Must be between 1000 and 15000000. You can set the value "
    "to zero to remove the limit.",
    source="hashicorp/terraform-provider-aws#35648",
    check=_wrong_units,
)
CACHE_STORAGE = Refusal(
    call=_CACHE,
    when="A limit of the data of a cache is not 1 to 5,000 GB",
    code="InvalidParameterValue",
    message="Invalid value for DataStorage limit: {size}. Must be between 1 and 5000",
    source="hashicorp/terraform-provider-aws#36382; Amazon ElastiCache User Guide, scaling serverless caches",
    check=_wrong_storage,
    is_quoted=False,
)
CACHE_NAME = Refusal(
    call=f"{_NEW_CACHE}, elasticache:CreateUser, AWS::ElastiCache::User, elasticache:CreateUserGroup, "
    "AWS::ElastiCache::UserGroup",
    when="The name of a cache, its last snapshot, a user or a group ends with a hyphen or has two in a row",
    code="InvalidParameterValue",
    message="The parameter {name} is not a valid identifier. Identifiers must begin with a letter; must "
    "contain only ASCII letters, digits, and hyphens; and must not end with a hyphen or contain two "
    "consecutive hyphens.",
    source="byu-oit/handel#232 and terraform-community-modules/tf_aws_elasticache_redis#46, of other "
    "identifiers of ElastiCache",
    check=_wrong_cache_name,
)
CACHE_NAME_LENGTH = Refusal(
    call=f"{_NEW_CACHE}, elasticache:CreateUser, AWS::ElastiCache::User, elasticache:CreateUserGroup, "
    "AWS::ElastiCache::UserGroup",
    when="The name of a cache, a user or a group is longer than 40 characters",
    code="InvalidParameterValue",
    message="{name} must have at most {most} characters",
    source="aws/aws-cdk#36459: of caches and groups; aws/aws-cdk, aws-elasticache-alpha: of users",
    check=_long_cache_name,
    is_quoted=False,
)
CACHE_SUBNETS = Refusal(
    call=_NEW_CACHE,
    when="A cache has other than two or three subnets",
    code="InvalidParameterValue",
    message="A serverless cache has two or three subnets, got {count}",
    source="CloudFormation Template Reference, AWS::ElastiCache::ServerlessCache, SubnetIds",
    check=_wrong_cache_subnets,
    is_quoted=False,
)
CACHE_VERSION = Refusal(
    call=_NEW_CACHE,
    when="There is no serverless cache with the engine and the version",
    code="InvalidParameterValue",
    message="Cannot find version {version} for {engine}",
    source="Amazon ElastiCache User Guide, supported engines and versions",
    check=_wrong_cache_version,
    is_quoted=False,
)
CACHE_SNAPSHOTS = Refusal(
    call=_CACHE,
    when="A cache keeps more snapshots than 35",
    code="InvalidParameterValue",
    message="SnapshotRetentionLimit must be between 0 and {most}",
    source="Amazon ElastiCache API Reference, CreateServerlessCache, SnapshotRetentionLimit: maximum 35 days",
    check=_many_snapshots,
    is_quoted=False,
)
CACHE_USER_GROUP = Refusal(
    call=_NEW_CACHE,
    when="There is no user group with the name",
    code="UserGroupNotFound",
    message="User group {name} not found",
    source="Amazon ElastiCache API Reference, CreateServerlessCache: UserGroupNotFound",
    check=_unknown_user_group,
    is_quoted=False,
)
CACHE_ENGINE = Refusal(
    call="update of AWS::ElastiCache::ServerlessCache",
    when="A cache goes back to a lower version, or to another engine than from Redis to Valkey",
    code="InvalidParameterCombination",
    message="The engine of a serverless cache cannot change from {old} to {new}",
    source="Amazon ElastiCache API Reference, ModifyServerlessCache, Engine and MajorEngineVersion",
    change=_engine_taken_back,
    is_quoted=False,
)
GROUP_USER = Refusal(
    call="elasticache:CreateUserGroup, AWS::ElastiCache::UserGroup",
    when="A user of a group does not exist",
    code="UserNotFound",
    message="User {name} not found",
    source="Amazon ElastiCache API Reference, CreateUserGroup: UserNotFound",
    check=_unknown_user,
    is_quoted=False,
)
GROUP_DEFAULT = Refusal(
    call="elasticache:CreateUserGroup, AWS::ElastiCache::UserGroup",
    when="A group for Redis has no user with the name default. One for Valkey needs none",
    code="DefaultUserRequired",
    message="User group needs to contain a user with the user name default.",
    source="hashicorp/terraform-provider-aws#25593; hashicorp/terraform-provider-aws#34784",
    check=_no_default_user,
)
GROUP_NAMES = Refusal(
    call="elasticache:CreateUserGroup, AWS::ElastiCache::UserGroup",
    when="Two users of a group have the same name",
    code="DuplicateUserName",
    message="A user with this name is in the group already",
    source="Amazon ElastiCache API Reference, CreateUserGroup: DuplicateUserName",
    check=_doubled_user,
    is_quoted=False,
)
GROUP_SIZE = Refusal(
    call="elasticache:CreateUserGroup, AWS::ElastiCache::UserGroup",
    when="A group has more than 100 users",
    code="UserQuotaExceeded",
    message="A user group has at most 100 users",
    source="Amazon ElastiCache User Guide, role-based access control: limits",
    check=lambda given: {} if len(given.get("UserIds") or ()) > _MOST_USERS else None,
    is_quoted=False,
)
USER_OPEN = Refusal(
    call="elasticache:CreateUser, AWS::ElastiCache::User",
    when="A user for Valkey needs no password",
    code="InvalidParameterCombination",
    message="Users for Valkey authenticate with IAM or a password",
    source="open-constructs/aws-cdk-library#69; Amazon ElastiCache User Guide, role-based access control",
    check=_open_user,
    is_quoted=False,
)

# --- Managed Service for Apache Flink. ---

_APPLICATION: Final = "kinesisanalyticsv2:CreateApplication, AWS::KinesisAnalyticsV2::Application"
#: Managed Service for Apache Flink Developer Guide, application scaling: the default quota.
_MOST_KPUS: Final = 64
_MOST_SUBTASKS: Final = 8
_LARGEST_CODE: Final = 512 * KIB * KIB


def _configuration(given: Values) -> Mapping[str, Any]:
    return given.get("ApplicationConfiguration") or {}


def _parallelism(given: Values) -> tuple[int, int]:
    flink = _configuration(given).get("FlinkApplicationConfiguration") or {}
    sizes = flink.get("ParallelismConfiguration") or {}
    return int(sizes.get("Parallelism") or 1), int(sizes.get("ParallelismPerKPU") or 1)


def _many_subtasks(given: Values) -> Values | None:
    _, per_unit = _parallelism(given)
    return {"most": _MOST_SUBTASKS} if per_unit > _MOST_SUBTASKS else None


def _many_units(given: Values) -> Values | None:
    subtasks, per_unit = _parallelism(given)
    units = -(-subtasks // per_unit)
    return {"units": units, "most": _MOST_KPUS} if units > _MOST_KPUS else None


def _code_place(given: Values) -> tuple[str, str] | None:
    """Return the bucket and the key of the program; None if the bucket is not the emulator's."""
    code = _configuration(given).get("ApplicationCodeConfiguration") or {}
    place = (code.get("CodeContent") or {}).get("S3ContentLocation") or {}
    bucket, key = str(place.get("BucketARN") or "").rpartition(":")[2], str(place.get("FileKey") or "")
    return (bucket, key) if bucket in s3._buckets else None


def _absent_code(given: Values) -> Values | None:
    place = _code_place(given)
    if place is None or s3._get_object_data(*place) is not None or _was_built(place[0]):
        return None
    return {"bucket": place[0], "key": place[1]}


def _was_built(bucket: str) -> bool:
    """Return whether a build for a bucket has succeeded: here it may be recorded only, and write nothing."""
    for build in codebuild._builds.values():
        project = codebuild._projects.get(build.get("projectName")) or {}
        variables = (project.get("environment") or {}).get("environmentVariables") or ()
        if build.get("buildStatus") == "SUCCEEDED" and bucket in [each.get("value") for each in variables]:
            return True
    return False


def _large_code(given: Values) -> Values | None:
    place = _code_place(given)
    size = len(s3._get_object_data(*place) or b"") if place else 0
    return {"size": size} if size > _LARGEST_CODE else None


FLINK_ROLE = Refusal(
    call=_APPLICATION,
    when="The role of an application does not let Managed Service for Apache Flink take it",
    code="InvalidArgumentException",
    message="Kinesis Analytics service doesn't have sufficient privileges to assume the role {role}",
    source="hashicorp/terraform-provider-aws, internal/service/kinesisanalyticsv2/application.go",
    check=untrusted("kinesisanalytics.amazonaws.com", "ServiceExecutionRole"),
)
FLINK_CODE = Refusal(
    call=_APPLICATION,
    when="The program of an application is not in its bucket, and no build for the bucket has succeeded",
    code="InvalidArgumentException",
    message="Please check the role provided or validity of S3 location you provided. We are unable to get "
    "the specified fileKey: {key} in the specified bucket: {bucket}",
    source="aws-solutions-library-samples/"
    "guidance-for-developing-data-and-ai-foundation-with-amazon-sagemaker#41",
    check=_absent_code,
)
FLINK_CODE_SIZE = Refusal(
    call=_APPLICATION,
    when="The program of an application is larger than 512 MiB",
    code="InvalidArgumentException",
    message="The program has {size} bytes, more than 512 MiB",
    source="Managed Service for Apache Flink Developer Guide, quota: size of the program",
    check=_large_code,
    is_quoted=False,
)
FLINK_SUBTASKS = Refusal(
    call=_APPLICATION,
    when="An application has more than 8 subtasks per Kinesis Processing Unit",
    code="InvalidArgumentException",
    message="ParallelismPerKPU must be at most {most}",
    source="Managed Service for Apache Flink Developer Guide, application scaling: ParallelismPerKPU",
    check=_many_subtasks,
    is_quoted=False,
)
FLINK_UNITS = Refusal(
    call=_APPLICATION,
    when="An application has more than 64 Kinesis Processing Units, the default quota",
    code="LimitExceededException",
    message="The application has {units} Kinesis Processing Units, more than {most}",
    source="Managed Service for Apache Flink Developer Guide, application scaling: the limit for Parallelism",
    check=_many_units,
    is_quoted=False,
)
