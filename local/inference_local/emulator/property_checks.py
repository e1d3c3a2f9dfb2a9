"""Decide from the settings of a resource whether AWS refuses it. The rows are in `property_refusals.py`.

Calls and resources have the same settings, often in another case.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from inference_blueprints.spec.cron import cron_faults
from inference_local.emulator.refusal_checks import KIB, Values, compact, documents, statements


def long_policies(given: Values) -> Values | None:
    """Count the policies that are part of a role: those of one call or resource."""
    size = sum(compact(document) for document in documents(given) if document != _trust(given))
    role = given.get("RoleName") or ", ".join(map(str, given.get("Roles") or ()))
    return {"role": role} if size > 10_240 else None  # noqa: PLR2004 - the row says it


def long_trust(given: Values) -> Values | None:
    """Measure the policy that says who may take a role."""
    document = _trust(given)
    return {} if document and compact(document) > 2048 else None  # noqa: PLR2004 - the row says it


def _trust(given: Values) -> Any:
    return given.get("AssumeRolePolicyDocument")


def lost_key(given: Values) -> Values | None:
    """Look for somebody who may change the policy of a key."""
    document = given.get("KeyPolicy") or given.get("Policy")
    if not document or given.get("BypassPolicyLockoutSafetyCheck"):
        return None
    for each in statements(document):
        actions = each.get("Action", ())
        actions = [actions] if isinstance(actions, str) else actions
        if each.get("Effect") == "Allow" and {"kms:*", "kms:Put*", "kms:PutKeyPolicy", "*"} & set(actions):
            return None
    return {}


def small_cidr(given: Values) -> Values | None:
    """IPv4 ranges of VPCs and subnets have /16 to /28."""
    block = str(given.get("CidrBlock") or "")
    size = block.rpartition("/")[2]
    return {"block": block} if size.isdigit() and not 16 <= int(size) <= 28 else None  # noqa: PLR2004


def large_user_data(given: Values) -> Values | None:
    """EC2 counts the data before it is encoded."""
    data = (given.get("LaunchTemplateData") or given).get("UserData")
    if not isinstance(data, str):
        return None
    try:
        size = len(base64.b64decode(data, validate=True))
    except ValueError:
        size = len(data.encode())
    return {} if size > 16 * KIB else None


def wrong_group_size(given: Values) -> Values | None:
    """Auto Scaling groups and node groups: minimum, desired, maximum."""
    sizes = given.get("ScalingConfig") or given.get("scalingConfig") or given
    found = [sizes.get(name) or sizes.get(name[0].lower() + name[1:]) for name in _SIZES]
    least, wanted, most = (None if each in (None, "") else int(each) for each in found)
    if least is not None and most is not None and least > most:
        return {"least": least, "most": most, "wanted": wanted}
    if wanted is None or least is None or most is None or least <= wanted <= most:
        return None
    return {"least": least, "most": most, "wanted": wanted}


_SIZES: Final = ("MinSize", "DesiredSize", "MaxSize")


def wrong_asg_size(given: Values) -> Values | None:
    """Read an Auto Scaling group's sizes."""
    return wrong_group_size({**given, "DesiredSize": given.get("DesiredCapacity")})


def wrong_target(given: Values) -> Values | None:
    """Application Auto Scaling: minimum and maximum of a target."""
    least, most = given.get("MinCapacity"), given.get("MaxCapacity")
    return {} if least is not None and most is not None and int(least) > int(most) else None


def wrong_schedule(given: Values) -> Values | None:
    """Events and Scheduler: rate, cron with six fields in their grammar, and at (Scheduler)."""
    text = given.get("ScheduleExpression")
    if not text:
        return None
    known = (
        r"rate\((1 (minute|hour|day)|[1-9]\d* (minutes|hours|days))\)|cron\((\S+ ){5}\S+\)|at\([\dT:-]{19}\)"
    )
    found = re.fullmatch(known, str(text))
    fields = str(text)[5:-1] if found and str(text).startswith("cron") else ""
    return {"expression": text} if not found or (fields and any(cron_faults(fields))) else None


def wrong_lifecycle(given: Values) -> Values | None:
    """S3: objects stay 30 days before they go to a class of infrequent access."""
    rules = (given.get("LifecycleConfiguration") or {}).get("Rules") or ()
    for rule in rules:
        for each in [*(rule.get("Transitions") or ()), *filter(None, [rule.get("Transition")])]:
            kind, days = str(each.get("StorageClass")), each.get("TransitionInDays")
            if kind in ("STANDARD_IA", "ONEZONE_IA") and days is not None and int(days) < 30:  # noqa: PLR2004
                return {"kind": kind}
    return None


def doubled_lifecycle(given: Values) -> Values | None:
    """S3: each rule has another id."""
    rules = (given.get("LifecycleConfiguration") or {}).get("Rules") or ()
    names = [rule["Id"] for rule in rules if rule.get("Id")]
    return {"name": names[0]} if len(names) > len(set(names)) else None


def lock_of_plain_bucket(given: Values) -> Values | None:
    """S3: a default retention needs a bucket with Object Lock."""
    rule = (given.get("ObjectLockConfiguration") or {}).get("Rule")
    return {} if rule and str(given.get("ObjectLockEnabled", "")).lower() != "true" else None


def missing_error_prefix(given: Values) -> Values | None:
    """Firehose: prefixes with expressions come in pairs."""
    destination = given.get("ExtendedS3DestinationConfiguration") or given.get("S3DestinationConfiguration")
    prefixes = destination or {}
    has_expression = "!{" in str(prefixes.get("Prefix", ""))
    return {} if has_expression and not prefixes.get("ErrorOutputPrefix") else None


def unused_attribute(given: Values) -> Values | None:
    """DynamoDB: the attributes are those of the keys."""
    if "KeySchema" not in given or "AttributeDefinitions" not in given:
        return None
    indexes = [*(given.get("GlobalSecondaryIndexes") or ()), *(given.get("LocalSecondaryIndexes") or ())]
    schemas = [given["KeySchema"], *(index.get("KeySchema") or () for index in indexes)]
    keys = {each["AttributeName"] for schema in schemas for each in schema}
    return {} if keys != {each["AttributeName"] for each in given["AttributeDefinitions"]} else None


def _containers(given: Values) -> list[Values]:
    return [
        {key[0].lower() + key[1:]: value for key, value in each.items()}
        for each in given.get("containerDefinitions") or given.get("ContainerDefinitions") or ()
    ]


def doubled_container(given: Values) -> Values | None:
    """ECS: containers of a task have different names."""
    names = [each.get("name") for each in _containers(given)]
    return {"name": names[0]} if len(names) > len(set(names)) else None


def not_essential(given: Values) -> Values | None:
    """ECS: a task has a container without which it ends."""
    found = [str(each.get("essential", True)).lower() for each in _containers(given)]
    return {} if found and "true" not in found else None


def wrong_host_port(given: Values) -> Values | None:
    """ECS: a task with a network of its own has no ports of the host."""
    if (given.get("networkMode") or given.get("NetworkMode")) != "awsvpc":
        return None
    for container in _containers(given):
        for each in container.get("portMappings") or ():
            host, own = (
                each.get(f"{name}Port") or each.get(f"{name.title()}Port") for name in ("host", "container")
            )
            if host and own and int(host) != int(own):
                return {}
    return None


#: ECS API Reference, HealthCheck: each setting with its least and greatest value.
_HEALTH_BOUNDS: Final = {
    "interval": ("Health check interval", 5, 300),
    "timeout": ("Health check timeout", 2, 60),
    "retries": ("Health check retries", 1, 10),
    "startPeriod": ("Health check start period", 0, 300),
}


def wrong_container_check(given: Values) -> Values | None:
    """ECS: bounds of a container's health check."""
    for container in _containers(given):
        found = container.get("healthCheck") or {}
        for name, (words, least, most) in _HEALTH_BOUNDS.items():
            value = found.get(name) or found.get(name[0].upper() + name[1:])
            if value is not None and not least <= int(value) <= most:
                return {"what": words, "least": least, "most": most}
    return None


#: Amazon ECS Developer Guide, Fargate task definition: CPU units, and MiB of memory from, to and in steps of.
_FARGATE: Final = {
    256: (512, 2048, 512),
    512: (1024, 4096, 1024),
    1024: (2048, 8192, 1024),
    2048: (4096, 16_384, 1024),
    4096: (8192, 30_720, 1024),
    8192: (16_384, 61_440, 4096),
    16_384: (32_768, 122_880, 8192),
}


def wrong_fargate_size(given: Values) -> Values | None:
    """ECS: sizes of tasks on Fargate."""
    wanted = given.get("requiresCompatibilities") or given.get("RequiresCompatibilities") or ()
    if "FARGATE" not in wanted:
        return None
    units, memory = (str(given.get(name) or given.get(name.title()) or "") for name in ("cpu", "memory"))
    if not units.isdigit() or not memory.isdigit():
        return None
    least, most, step = _FARGATE.get(int(units), (1, 0, 1))
    fits = least <= int(memory) <= most and (int(memory) % step == 0)
    return None if fits else {"units": units, "memory": memory}


def many_widgets(given: Values) -> Values | None:
    """CloudWatch: a dashboard has 500 widgets."""
    try:
        body = json.loads(given.get("DashboardBody") or "{}")
    except ValueError:
        return {"reason": "must be a valid JSON object"}
    return {"reason": "has more than 500 widgets"} if len(body.get("widgets", ())) > 500 else None  # noqa: PLR2004


def long_parameter(given: Values) -> Values | None:
    """Systems Manager: a value of the standard tier has 4,096 characters."""
    standard = (given.get("Tier") or "Standard") == "Standard"
    return {} if standard and len(str(given.get("Value") or "")) > 4 * KIB else None


def wrong_path_part(given: Values) -> Values | None:
    """Check the characters of a part of a path of API Gateway."""
    part = str(given.get("PathPart") or given.get("pathPart") or "")
    return {} if part and not re.fullmatch(r"[a-zA-Z0-9._\-:]+|\{[a-zA-Z0-9._\-:]+\+?\}", part) else None


def wrong_api_timeout(given: Values) -> Values | None:
    """Check how long API Gateway waits for a backend."""
    found = (given.get("Integration") or {}).get("TimeoutInMillis") or given.get("timeoutInMillis")
    return {} if found and not 50 <= int(found) <= 29_000 else None  # noqa: PLR2004 - the row says it


def large_message(given: Values) -> Values | None:
    """SNS: bytes of a message."""
    return {} if len(str(given.get("Message") or "").encode()) > 256 * KIB else None


def long_subject(given: Values) -> Values | None:
    """SNS: a subject is a short line."""
    text = given.get("Subject")
    return {} if text is not None and (len(text) > 100 or "\n" in text or not text) else None  # noqa: PLR2004


#: Amazon SQS API Reference, SetQueueAttributes.
_QUEUE_BOUNDS: Final = {
    "DelaySeconds": (0, 900),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}


def wrong_queue(given: Values) -> Values | None:
    """SQS: bounds of a queue's settings."""
    settings = given.get("Attributes") or given
    for name, (least, most) in _QUEUE_BOUNDS.items():
        value = settings.get(name)
        if value not in (None, "") and not least <= int(value) <= most:
            return {"name": name}
    return None


def disk_beside_template(given: Values) -> Values | None:
    """EKS: the launch template has the disk."""
    template = given.get("LaunchTemplate") or given.get("launchTemplate")
    return {} if template and (given.get("DiskSize") or given.get("diskSize")) else None


def few_cluster_subnets(given: Values) -> Values | None:
    """EKS: the subnets of a cluster are in two zones, so there are two."""
    network = given.get("resourcesVpcConfig") or given.get("ResourcesVpcConfig") or {}
    subnets = network.get("subnetIds", network.get("SubnetIds"))
    return {} if subnets is not None and len(set(subnets)) < 2 else None  # noqa: PLR2004 - the row says it


def no_administrator(given: Values) -> Values | None:
    """EKS: without access entries, the creator has to be let in."""
    access = {
        key[0].lower() + key[1:]: value
        for key, value in (given.get("accessConfig") or given.get("AccessConfig") or {}).items()
    }
    lets_in = str(access.get("bootstrapClusterCreatorAdminPermissions", True)).lower() == "true"
    return {} if access.get("authenticationMode") == "CONFIG_MAP" and not lets_in else None


def skipped_version(before: Values, after: Values) -> Values | None:
    """EKS: a cluster goes up by one minor version."""
    old, new = (str(each.get("Version") or "") for each in (before, after))
    if not old or not new or old == new:
        return None
    return {"old": old, "new": new} if _minor(new) != _minor(old) + 1 else None


def _minor(version: str) -> int:
    return int(version.split(".")[1])


#: EKS User Guide, grant access to Kubernetes APIs: access entries cannot be taken away again.
_AUTHENTICATION: Final = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")


def authentication_taken_back(before: Values, after: Values) -> Values | None:
    """EKS: a cluster gets access entries in one step, and then loses its ConfigMap in another."""
    old, new = (
        (each.get("AccessConfig") or {}).get("AuthenticationMode", "CONFIG_MAP") for each in (before, after)
    )
    if old == new or new not in _AUTHENTICATION:
        return None
    return {"old": old, "new": new} if _AUTHENTICATION.index(new) != _AUTHENTICATION.index(old) + 1 else None


def _named(given: Values, name: str) -> Any:
    """Return a value by its name in an API or in a template."""
    return given.get(name) or given.get(name[0].upper() + name[1:])


def type_and_strategy(given: Values) -> Values | None:
    """ECS: a service has a launch type or a strategy."""
    return {} if _named(given, "launchType") and _named(given, "capacityProviderStrategy") else None


def daemon_strategy(given: Values) -> Values | None:
    """ECS: services with a task per host have a launch type."""
    is_daemon = _named(given, "schedulingStrategy") == "DAEMON"
    return {} if is_daemon and _named(given, "capacityProviderStrategy") else None


def _is_fargate(given: Values) -> bool:
    return "FARGATE" in (_named(given, "requiresCompatibilities") or ())


def fargate_log_role(given: Values) -> Values | None:
    """ECS: on Fargate, the execution role writes the logs."""
    if not _is_fargate(given) or _named(given, "executionRoleArn"):
        return None
    drivers = [_named(each.get("logConfiguration") or {}, "logDriver") for each in _containers(given)]
    return {} if "awslogs" in drivers else None


def fargate_network(given: Values) -> Values | None:
    """ECS: a task on Fargate has a network of its own."""
    return {} if _is_fargate(given) and _named(given, "networkMode") != "awsvpc" else None


def secrets_role(given: Values) -> Values | None:
    """ECS: the execution role reads secrets."""
    has_secrets = any(each.get("secrets") for each in _containers(given))
    return {} if has_secrets and not _named(given, "executionRoleArn") else None


def shared_secret_name(given: Values) -> Values | None:
    """ECS: a variable has its value from a secret or from the definition."""
    for container in _containers(given):
        secrets, plain = (
            [str(_named(each, "name")) for each in container.get(kind) or ()]
            for kind in ("secrets", "environment")
        )
        for name in secrets:
            if name in plain or secrets.count(name) > 1:
                return {"name": name}
    return None


def container_memory(given: Values) -> Values | None:
    """ECS: a task has a memory, or each of its containers."""
    if given.get("memory") or given.get("Memory"):
        return None
    for container in _containers(given):
        if not container.get("memory") and not container.get("memoryReservation"):
            return {"name": container.get("name")}
    return None
