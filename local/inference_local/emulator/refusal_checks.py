"""Decide from the parameters of a call, or the properties of a resource, whether AWS refuses it.

Each returns what to fill into the words of its row of `request_refusals.py`, and None if the row does not
apply. Calls and resources have the same parameters, often in another case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from inference_local.emulator.refusals import Check

Values = Mapping[str, Any]
KIB: Final = 1024


def more_than(name: str, most: int) -> Check:
    """Check the number of entries of a list."""

    def check(given: Values) -> Values | None:
        found = given.get(name) or ()
        return {"count": len(found), "most": most} if len(found) > most else None

    return check


def outside(name: str, least: int, most: int) -> Check:
    """Check a number."""

    def check(given: Values) -> Values | None:
        value = given.get(name)
        outside = value not in (None, "") and not least <= int(value) <= most
        return {"name": name, "value": value, "least": least, "most": most} if outside else None

    return check


def statements(document: Any) -> list[Values]:
    """Return the statements of a policy, which is a JSON text or an object."""
    try:
        read = json.loads(document) if isinstance(document, str) else document
    except ValueError:
        return []
    found = read.get("Statement", []) if isinstance(read, Mapping) else []
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, Mapping)]


def documents(given: Values) -> Iterator[Any]:
    """Yield the policies of a call or of a resource."""
    for name in ("PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy", "Policy"):
        if given.get(name):
            yield given[name]
    for each in given.get("Policies") or ():
        if isinstance(each, Mapping):
            yield each.get("PolicyDocument")


def wrong_sid(given: Values) -> Values | None:
    sids = [str(each.get("Sid", "")) for document in documents(given) for each in statements(document)]
    return {} if any(not re.fullmatch("[0-9A-Za-z]*", sid) for sid in sids) else None


def doubled_sid(given: Values) -> Values | None:
    for document in documents(given):
        sids = [each["Sid"] for each in statements(document) if each.get("Sid")]
        if len(sids) > len(set(sids)):
            return {}
    return None


def compact(document: Any) -> int:
    """Return the characters of a policy. IAM does not count white space."""
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return len(document)
    return len(json.dumps(document, separators=(",", ":")))


def longer_policy(name: str, most: int) -> Check:
    def check(given: Values) -> Values | None:
        return {"most": most} if given.get(name) and compact(given[name]) > most else None

    return check


def _variables(given: Values) -> Mapping[str, Any]:
    found = (given.get("Environment") or {}).get("Variables") or {}
    return found if isinstance(found, Mapping) else {}


def many_variables(given: Values) -> Values | None:
    # The documents say 4 KB for all names and values together.
    measured = json.dumps(dict(_variables(given)), separators=(",", ":"))
    size = sum(len(str(key).encode()) + len(str(value).encode()) for key, value in _variables(given).items())
    return {"measured": measured[:200]} if size > 4 * KIB else None


#: AWS Lambda Developer Guide, defined runtime environment variables: reserved.
_RESERVED_VARIABLES: Final = frozenset(
    [
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_LAMBDA_RUNTIME_API",
        "LAMBDA_TASK_ROOT",
        "LAMBDA_RUNTIME_DIR",
    ]
)


def reserved_variables(given: Values) -> Values | None:
    found = sorted(_RESERVED_VARIABLES & set(_variables(given)))
    return {"keys": ", ".join(found)} if found else None


def mixed_metrics(given: Values) -> Values | None:
    """CloudWatch Logs: a metric has dimensions or a default value."""
    found = given.get("metricTransformations") or given.get("MetricTransformations") or ()
    for each in found:
        lower = {key[0].lower() + key[1:]: value for key, value in each.items()}
        if lower.get("dimensions") and lower.get("defaultValue") is not None:
            return {}
    return None


def many_dimensions(given: Values) -> Values | None:
    for each in given.get("metricTransformations") or given.get("MetricTransformations") or ():
        count = len(each.get("dimensions") or each.get("Dimensions") or ())
        if count > 3:  # noqa: PLR2004 - of a metric of a filter
            return {"count": count}
    return None


def doubled_items(given: Values) -> Values | None:
    """DynamoDB: a transaction writes an item once."""
    seen: set[str] = set()
    for item in given.get("TransactItems") or ():
        for kind, of in item.items():
            key = of.get("Key") if kind != "Put" else None
            if key is None:
                continue
            place = json.dumps([of.get("TableName"), key], sort_keys=True, default=str)
            if place in seen:
                return {}
            seen.add(place)
    return None


def long_expression(given: Values) -> Values | None:
    for name in (
        "ConditionExpression",
        "FilterExpression",
        "KeyConditionExpression",
        "ProjectionExpression",
        "UpdateExpression",
    ):
        size = len(str(given.get(name) or "").encode())
        if size > 4 * KIB:
            return {"name": name, "size": size}
    return None


def period_too_long(given: Values) -> Values | None:
    """CloudWatch: an alarm looks at a day, or at a week if its periods are an hour or longer."""
    period, count = int(given.get("Period") or 0), int(given.get("EvaluationPeriods") or 1)
    for query in given.get("Metrics") or ():
        period = max(period, int(((query.get("MetricStat") or {}).get("Period")) or query.get("Period") or 0))
    day, hour = 86_400, 3600
    return {} if period * count > (7 * day if period >= hour else day) else None


def many_points(given: Values) -> Values | None:
    try:
        seconds = (_moment(given["EndTime"]) - _moment(given["StartTime"])) / int(given["Period"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return {"count": int(seconds)} if seconds > 1440 else None  # noqa: PLR2004 - the row says it


def _moment(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, datetime):
        return value.timestamp()
    return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()


def large_events(given: Values) -> Values | None:
    size = sum(
        sum(len(str(entry.get(key) or "").encode()) for key in ("Source", "Detail", "DetailType"))
        + sum(len(str(each).encode()) for each in entry.get("Resources") or ())
        + (14 if entry.get("Time") else 0)
        for entry in given.get("Entries") or ()
    )
    return {} if size > 1024 * KIB else None


def group_description(given: Values) -> Values | None:
    text = given.get("GroupDescription", given.get("Description", ""))
    return None if re.fullmatch(r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{0,255}", str(text)) else {}


def rule_descriptions(given: Values) -> Values | None:
    rules = [given, *(given.get("SecurityGroupIngress") or ()), *(given.get("SecurityGroupEgress") or ())]
    texts = [str(each.get("Description") or "") for each in rules if isinstance(each, Mapping)]
    return (
        {}
        if any(not re.fullmatch(r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{0,255}", text) for text in texts)
        else None
    )


def load_balancer_name(given: Values) -> Values | None:
    name = str(given.get("Name") or "")
    return {"name": name} if len(name) > 32 else None  # noqa: PLR2004 - the row says it


def health_timeout(given: Values) -> Values | None:
    timeout, interval = given.get("HealthCheckTimeoutSeconds"), given.get("HealthCheckIntervalSeconds")
    if timeout and interval and int(timeout) >= int(interval):
        return {}
    return None


def iam_user_name(given: Values) -> Values | None:
    mode = (given.get("AuthenticationMode") or {}).get("Type")
    return {} if mode == "iam" and given.get("UserId") != given.get("UserName") else None


def template_body(given: Values) -> Values | None:
    size = len(str(given.get("TemplateBody") or "").encode())
    return {"size": size} if size > 51_200 else None  # noqa: PLR2004 - the row says it


def node_label(given: Values) -> Values | None:
    reserved = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
    labels = given.get("Labels") or given.get("labels") or {}
    return {} if any(prefix in key for key in labels for prefix in reserved) else None


def typed_entry(given: Values) -> Values | None:
    kind = given.get("Type") or given.get("type") or "STANDARD"
    named = any(given.get(key) for key in ("KubernetesGroups", "kubernetesGroups", "Username", "username"))
    return {"kind": kind} if kind != "STANDARD" and named else None


def few_balancer_subnets(given: Values) -> Values | None:
    subnets = given.get("Subnets") or given.get("SubnetMappings") or ()
    return {} if (given.get("Type") or "application") == "application" and len(subnets) < 2 else None  # noqa: PLR2004 - the row says it


def doubled_rules(given: Values) -> Values | None:
    """EC2: what each rule is about, without its description."""
    for name in ("SecurityGroupIngress", "SecurityGroupEgress", "IpPermissions"):
        found = given.get(name) or ()
        rules = [
            json.dumps({key: str(each[key]) for key in each if key != "Description"}, sort_keys=True)
            for each in (found if isinstance(found, list) else ())
            if isinstance(each, Mapping)
        ]
        if len(rules) > len(set(rules)):
            return {}
    return None


def several_indexes(before: Values, after: Values) -> Values | None:
    """DynamoDB: an update makes or deletes one index."""
    old, new = (
        {index["IndexName"] for index in each.get("GlobalSecondaryIndexes") or ()} for each in (before, after)
    )
    return {} if len(old ^ new) > 1 else None


def index_throughput(given: Values) -> Values | None:
    """DynamoDB: indexes of a table on demand are on demand."""
    if given.get("BillingMode") != "PAY_PER_REQUEST":
        return None
    for index in given.get("GlobalSecondaryIndexes") or ():
        if index.get("ProvisionedThroughput"):
            return {"name": index.get("IndexName")}
    return None


def uneven_brokers(given: Values) -> Values | None:
    """MSK: each zone has as many brokers."""
    count = given.get("numberOfBrokerNodes") or given.get("NumberOfBrokerNodes")
    group = given.get("brokerNodeGroupInfo") or given.get("BrokerNodeGroupInfo") or {}
    subnets = group.get("clientSubnets") or group.get("ClientSubnets")
    return {} if count and subnets and int(count) % len(subnets) else None
