"""What AWS refuses for the documents in a request alone: policies, patterns of events, lists of metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from inference_local.emulator.refusal_checks import Values, documents, statements
from inference_local.emulator.refusals import Refusal

# --- Policies. ---


def _listed(statement: Values, name: str) -> list[str]:
    found = statement.get(name) or ()
    return [found] if isinstance(found, str) else [str(each) for each in found]


def _many_policies(given: Values) -> Values | None:
    return {} if len(given.get("ManagedPolicyArns") or ()) > 10 else None  # noqa: PLR2004 - the row says it


def _no_resources(given: Values) -> Values | None:
    """IAM: a statement of an identity is about resources. One of who may take a role is about the role."""
    trust = given.get("AssumeRolePolicyDocument")
    for document in documents(given):
        for each in statements(document) if document is not trust else ():
            if not each.get("Resource") and not each.get("NotResource"):
                return {}
    return None


def _bucket_resources(given: Values) -> Iterator[tuple[Values, list[str]]]:
    """Yield the statements of a bucket's policy with the parts of their resources after the service's."""
    for document in documents(given):
        for each in statements(document):
            yield each, [resource.rpartition(":::")[2] for resource in _listed(each, "Resource")]


def _other_bucket(given: Values) -> Values | None:
    bucket = str(given.get("Bucket") or "")
    for _, resources in _bucket_resources(given):
        if any(not fnmatchcase(bucket, each.partition("/")[0]) for each in resources):
            return {}
    return None


#: Service Authorization Reference, Amazon S3: how actions on objects, and on buckets, begin.
_OF_OBJECTS: Final = (
    "GetObject",
    "PutObject",
    "DeleteObject",
    "AbortMultipartUpload",
    "ListMultipartUploadParts",
)
_OF_BUCKETS: Final = ("ListBucket", "GetBucket", "PutBucket")


def _useless_action(given: Values) -> Values | None:
    for statement, resources in _bucket_resources(given):
        has_objects = any("/" in each or each.endswith("*") for each in resources)
        has_bucket = any("/" not in each for each in resources)
        for action in _listed(statement, "Action"):
            name = action.partition(":")[2]
            if resources and (
                (name.startswith(_OF_OBJECTS) and not has_objects)
                or (name.startswith(_OF_BUCKETS) and not has_bucket)
            ):
                return {}
    return None


#: Amazon SNS Developer Guide, policy language elements: actions of topics' policies.
_OF_TOPICS: Final = frozenset(
    [
        *("addpermission", "deletetopic", "getdataprotectionpolicy", "gettopicattributes", "*"),
        *("listsubscriptionsbytopic", "listtagsforresource", "publish", "putdataprotectionpolicy"),
        *("removepermission", "settopicattributes", "subscribe", "receive", "p*"),
    ]
)


def _other_topic_actions(given: Values) -> Values | None:
    for document in documents(given):
        for statement in statements(document):
            for action in _listed(statement, "Action"):
                service, _, name = action.lower().partition(":")
                if action != "*" and (service != "sns" or name not in _OF_TOPICS):
                    return {}
    return None


POLICIES_PER_ROLE = Refusal(
    call="AWS::IAM::Role",
    when="A role has more than 10 managed policies, the default quota",
    code="LimitExceeded",
    message="Cannot exceed quota for PoliciesPerRole: 10",
    source="aws/eks-hybrid#741; IAM User Guide, IAM and AWS STS quotas",
    check=_many_policies,
)
NO_RESOURCES = Refusal(
    call="iam:PutRolePolicy, iam:CreatePolicy, AWS::IAM::Policy, AWS::IAM::ManagedPolicy, AWS::IAM::Role",
    when="A statement of a policy is about no resource",
    code="MalformedPolicyDocument",
    message="Policy statement must contain resources.",
    source="trussworks/terraform-aws-s3-anti-virus#28",
    check=_no_resources,
)
BUCKET_RESOURCE = Refusal(
    call="s3:PutBucketPolicy, AWS::S3::BucketPolicy",
    when="The policy of a bucket is about another bucket",
    code="MalformedPolicy",
    message="Policy has invalid resource",
    source="hashicorp/terraform#23570; hashicorp/terraform#28974",
    check=_other_bucket,
)
BUCKET_ACTION = Refusal(
    call="s3:PutBucketPolicy, AWS::S3::BucketPolicy",
    when="A statement has an action on objects and no objects, or one on a bucket and no bucket",
    code="MalformedPolicy",
    message="Action does not apply to any resource(s) in statement",
    source="ministryofjustice/modernisation-platform#10762; aws-amplify/docs#7799",
    check=_useless_action,
)
TOPIC_ACTION = Refusal(
    call="AWS::SNS::TopicPolicy",
    when="The policy of a topic has an action that is not about topics",
    code="InvalidParameter",
    message="Invalid parameter: Policy statement action out of service scope!",
    source="hashicorp/terraform#12740",
    check=_other_topic_actions,
)

# --- Patterns of events. ---


def _pattern(given: Values) -> Any:
    pattern = given.get("EventPattern")
    try:
        return json.loads(pattern) if isinstance(pattern, str) else pattern
    except ValueError:
        return None


def _empty_in(value: Any) -> str | None:
    """Return what is empty in a pattern. The conditions in its lists are others' business."""
    if isinstance(value, list):
        return None if value else "arrays"
    if not isinstance(value, Mapping):
        return None
    return (
        next((found for each in value.values() if (found := _empty_in(each))), None) if value else "objects"
    )


def _empty_pattern(given: Values) -> Values | None:
    kind = _empty_in(_pattern(given))
    return {"kind": kind} if kind else None


def _plain_in(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return None
    for name, each in value.items():
        if not isinstance(each, Mapping | list):
            return str(name)
        if found := _plain_in(each):
            return found
    return None


def _plain_pattern(given: Values) -> Values | None:
    name = _plain_in(_pattern(given))
    return {"name": name} if name else None


def _nothing_to_match(given: Values) -> Values | None:
    return None if given.get("EventPattern") or given.get("ScheduleExpression") else {}


PATTERN_EMPTY = Refusal(
    call="events:PutRule, AWS::Events::Rule",
    when="A field of an event pattern has an empty list or an empty object",
    code="InvalidEventPatternException",
    message="Event pattern is not valid. Reason: Empty {kind} are not allowed",
    source="aws/aws-cdk#36904; cloud-custodian/cloud-custodian#6507",
    check=_empty_pattern,
)
PATTERN_FORM = Refusal(
    call="events:PutRule, AWS::Events::Rule",
    when="A field of an event pattern has a value in the place of a list of values",
    code="InvalidEventPatternException",
    message='Event pattern is not valid. Reason: "{name}" must be an object or an array',
    source="awslabs/aws-deployment-framework#455; buildkite/docs#896",
    check=_plain_pattern,
)
RULE_EMPTY = Refusal(
    call="events:PutRule, AWS::Events::Rule",
    when="A rule has neither a pattern nor a schedule",
    code="ValidationException",
    message="Parameter(s) EventPattern or ScheduleExpression must be specified.",
    source="awsdocs/aws-cloudformation-user-guide#456",
    check=_nothing_to_match,
)

# --- Metrics of alarms. ---


def _not_one_result(given: Values) -> Values | None:
    """CloudWatch: a query returns data unless it says that it does not."""
    metrics = given.get("Metrics")
    # A query in PromQL is alone, and its samples are its result.
    if not metrics:
        return None
    returned = [each for each in metrics if str(each.get("ReturnData", True)).lower() == "true"]
    return {} if len(returned) != 1 else None


def _many_datapoints(given: Values) -> Values | None:
    wanted, periods = given.get("DatapointsToAlarm"), given.get("EvaluationPeriods")
    return {} if wanted and periods and int(wanted) > int(periods) else None


def _metric_beside_list(given: Values) -> Values | None:
    return {} if given.get("Metrics") and given.get("Statistic") else None


_ALARM: Final = "cloudwatch:PutMetricAlarm, AWS::CloudWatch::Alarm"
ALARM_RESULT = Refusal(
    call=_ALARM,
    when="Not exactly one query of an alarm's metrics returns data",
    code="ValidationError",
    message="Exactly one element of the metrics list should return data.",
    source="hashicorp/terraform-provider-aws#29894",
    check=_not_one_result,
)
ALARM_DATAPOINTS = Refusal(
    call=_ALARM,
    when="An alarm needs more data points than it looks at",
    code="ValidationError",
    message="DatapointsToAlarm must be less than or equal to EvaluationPeriods",
    source="hashicorp/terraform#24070",
    check=_many_datapoints,
)
ALARM_STATISTIC = Refusal(
    call=_ALARM,
    when="An alarm has a list of metrics and a statistic",
    code="ValidationError",
    message="Statistic should not be set if list of Metrics is set.",
    source="aws-cloudformation/cfn-lint#766; cloudtools/troposphere#1276",
    check=_metric_beside_list,
)
