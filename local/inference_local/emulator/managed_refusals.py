"""What managed services refuse: add-ons of EKS, schedules, the roles of state machines, and bakes.

Some rows compare a request with what the emulator has: who may take a role, and what is in a bucket. What was
not made in the emulator, such as a role that only an ARN names, is not judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final
from zoneinfo import available_timezones

from jsonschema import Draft7Validator
from ministack.services import iam

from inference_local.emulator.refusal_checks import KIB, Values, statements
from inference_local.emulator.refusals import Check, Refusal

# --- What the emulator has. ---


def _role(arn: object) -> Mapping[str, Any] | None:
    """Return a role of the emulator; None if it was not made here."""
    found: Mapping[str, Any] | None = iam._roles.get(str(arn or "").rpartition("/")[2])
    return found if found and found["Arn"] == arn else None


def _trusts(role: Mapping[str, Any], service: str) -> bool:
    """Return whether a role lets a service take it. Its conditions are not judged."""
    for each in statements(role.get("AssumeRolePolicyDocument")):
        principal = each.get("Principal")
        services = principal.get("Service", ()) if isinstance(principal, Mapping) else ()
        known = [services] if isinstance(services, str) else list(services)
        regional = service.replace(".amazonaws.com", ".*.amazonaws.com")
        if each.get("Effect") == "Allow" and any(
            name == service or fnmatchcase(name, regional) for name in known
        ):
            return True
    return False


def _may(role: Mapping[str, Any], action: str) -> bool:
    """Return whether a policy of a role allows an action on anything."""
    documents = list((role.get("InlinePolicies") or {}).values())
    for arn in role.get("AttachedPolicies") or ():
        policy = iam._policies.get(arn)
        if policy is None:
            return True  # a policy of AWS, which the emulator does not have
        documents += [each["Document"] for each in policy["Versions"].values()]
    for each in (found for document in documents for found in statements(document)):
        actions = each.get("Action", ())
        actions = [actions] if isinstance(actions, str) else actions
        if each.get("Effect") == "Allow" and any(
            fnmatchcase(action.lower(), known.lower()) for known in actions
        ):
            return True
    return False


def untrusted(service: str, *path: str) -> Check:
    """Check that a role of the emulator lets a service take it. The path leads to its ARN."""

    def check(given: Values) -> Values | None:
        value: Any = given
        for name in path:
            value = _key(value, name)
        role = _role(value)
        return {"role": value} if role and not _trusts(role, service) else None

    return check


def _key(given: Any, name: str) -> Any:
    """Return a value by its name in an API, or in a template. None if there is none."""
    if not isinstance(given, Mapping):
        return None
    return given.get(name, given.get(name[0].upper() + name[1:]))


# --- Add-ons of EKS. ---

_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
#: AWS CLI Command Reference, describe-addon-configuration: vpc-cni v1.15.1. Later versions have more keys of
#: `env`, so any is taken here. charts/configuration.schema.json in aws/eks-node-monitoring-agent.
_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "vpc-cni": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **{name: {"type": "string"} for name in ("enableNetworkPolicy", "enableWindowsIpam")},
            **{name: {"type": "object"} for name in ("affinity", "eniConfig", "init", "resources")},
            **dict.fromkeys(("env", "nodeAgent", "podAnnotations", "podLabels"), _TEXTS),
            **{
                name: {"type": "integer"}
                for name in ("livenessProbeTimeoutSeconds", "readinessProbeTimeoutSeconds")
            },
            "tolerations": {"type": "array"},
        },
    },
    "eks-node-monitoring-agent": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "global": {"type": "object"},
            "nodeAgent": {"type": "object"},
            "extraObjects": {"type": "array"},
            "dcgmAgent": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "enabled": {"type": "boolean"},
                    "priorityClassName": {"type": "string"},
                    **{
                        name: {"type": "object"}
                        for name in ("affinity", "podAnnotations", "podLabels", "nodeSelector", "resources")
                    },
                    **{name: {"type": "array"} for name in ("tolerations", "resizePolicy")},
                },
            },
        },
    },
}
_KINDS: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
#: Amazon EKS User Guide, AWS add-ons, and community add-ons.
_ADD_ONS: Final = frozenset(
    [
        *("vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent"),
        *("aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver"),
        *("aws-secrets-store-csi-driver-provider", "snapshot-controller", "adot", "aws-guardduty-agent"),
        *("amazon-cloudwatch-observability", "aws-network-flow-monitoring-agent", "metrics-server"),
        *("cert-manager", "external-dns", "kube-state-metrics", "prometheus-node-exporter", "fluent-bit"),
        *("amazon-sagemaker-hyperpod-taskgovernance", "aws-privateca-connector-for-kubernetes"),
    ]
)


def _addon_name(given: Values) -> str:
    return str(_key(given, "addonName") or "")


def _unknown_addon(given: Values) -> Values | None:
    # Add-ons of the AWS Marketplace have the name of their seller before an underscore.
    name = _addon_name(given)
    return {"name": name} if name and name not in _ADD_ONS and "_" not in name else None


def _wrong_addon_version(given: Values) -> Values | None:
    version = _key(given, "addonVersion")
    # The versions of AWS's add-ons, such as v1.20.4-eksbuild.1.
    return {} if version and not re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", str(version)) else None


def _addon_values(given: Values) -> Any:
    try:
        return json.loads(_key(given, "configurationValues") or "{}")
    except ValueError:
        return None  # YAML, which EKS reads too


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), "object")


def _addon_faults(given: Values) -> Iterator[tuple[str, str]]:
    """Yield what the schema of an add-on refuses: the keyword of the schema, and EKS's words."""
    values = _addon_values(given)
    schema: Mapping[str, Any] = _SCHEMAS.get(_addon_name(given), {"type": "object"})
    for error in Draft7Validator(schema).iter_errors(values):
        place = "".join(f".{part}" for part in error.absolute_path)
        if error.validator == "type":
            yield "type", f"${place}: {_kind(error.instance)} found, {error.validator_value} expected"
        if error.validator == "additionalProperties":
            name = next(each for each in error.instance if each not in error.schema["properties"])
            yield (
                "additionalProperties",
                f"${place}.{name}: is not defined in the schema and the schema does not allow additional "
                "properties",
            )


def _addon_fault(keyword: str) -> Check:
    def check(given: Values) -> Values | None:
        if _key(given, "configurationValues") is None or _addon_values(given) is None:
            return None
        return next(({"found": words} for found, words in _addon_faults(given) if found == keyword), None)

    return check


_ADD_ON: Final = "eks:CreateAddon, eks:UpdateAddon, AWS::EKS::Addon"
_VALUES: Final = (
    "ConfigurationValue provided in request is not supported: Json schema validation failed with error: "
    "[{found}]"
)
ADDON_NAME = Refusal(
    call="eks:CreateAddon, AWS::EKS::Addon",
    when="There is no add-on with the name",
    code="InvalidParameterException",
    message="Addon specified is not supported",
    source="aws/containers-roadmap#1429; Amazon EKS User Guide, AWS add-ons and community add-ons",
    check=_unknown_addon,
)
ADDON_VERSION = Refusal(
    call=_ADD_ON,
    when="The version of an add-on is no version of EKS, such as v1.20.4-eksbuild.1",
    code="InvalidParameterException",
    message="Addon version specified is not supported",
    source="hashicorp/terraform-provider-aws#33385; hashicorp/terraform-provider-aws#20559",
    check=_wrong_addon_version,
)
ADDON_VALUE_KIND = Refusal(
    call=_ADD_ON,
    when="A value of an add-on has another kind than its schema says: the network plugin takes texts, no "
    "truth values",
    code="InvalidParameterException",
    message=_VALUES,
    source="cookpad/terraform-aws-eks#331; AWS CLI Command Reference, describe-addon-configuration: the "
    "schema of vpc-cni; aws/amazon-vpc-cni-k8s#3059",
    check=_addon_fault("type"),
)
ADDON_VALUE_UNKNOWN = Refusal(
    call=_ADD_ON,
    when="A value of an add-on is not in its schema: those of vpc-cni and of the monitoring agent are known",
    code="InvalidParameterException",
    message=_VALUES,
    source="aws/containers-roadmap#2216; awslabs/mountpoint-s3-csi-driver#784; "
    "terraform-aws-modules/terraform-aws-eks#2878",
    check=_addon_fault("additionalProperties"),
)

# --- EventBridge Scheduler. ---

_SCHEDULE: Final = "scheduler:CreateSchedule, scheduler:UpdateSchedule, AWS::Scheduler::Schedule"


def _wrong_window(given: Values) -> Values | None:
    window = given.get("FlexibleTimeWindow") or {}
    return {} if window.get("Mode") == "FLEXIBLE" and not window.get("MaximumWindowInMinutes") else None


@cache
def _zones() -> frozenset[str]:
    """Return the time zones of this machine's database. It may have none."""
    return frozenset(available_timezones())


def _unknown_zone(given: Values) -> Values | None:
    zone = given.get("ScheduleExpressionTimezone")
    return {"zone": zone} if zone and _zones() and zone not in _zones() else None


def _target(given: Values) -> Mapping[str, Any]:
    return given.get("Target") or {}


def _no_target_arn(given: Values) -> Values | None:
    arn = _target(given).get("Arn")
    known = r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d*:.+"
    return {} if arn and not re.fullmatch(known, str(arn)) else None


#: EventBridge Scheduler API Reference, Target, Input: targets that take JSON only.
_JSON_TARGETS: Final = (":lambda:", ":states:", ":events:")


def _wrong_target_input(given: Values) -> Values | None:
    text = _target(given).get("Input")
    if not isinstance(text, str) or not any(kind in str(_target(given).get("Arn")) for kind in _JSON_TARGETS):
        return None
    try:
        json.loads(text)
    except ValueError:
        return {}
    return None


def _large_input(given: Values) -> Values | None:
    size = len(str(_target(given).get("Input") or "").encode())
    return {"size": size} if size > 256 * KIB else None


SCHEDULE_ROLE = Refusal(
    call=_SCHEDULE,
    when="The role of a schedule does not let EventBridge Scheduler take it",
    code="ValidationException",
    message="The execution role you provide must allow AWS EventBridge Scheduler to assume the role.",
    source="aws/aws-sdk-js-v3#6494",
    check=untrusted("scheduler.amazonaws.com", "Target", "RoleArn"),
)
SCHEDULE_WINDOW = Refusal(
    call=_SCHEDULE,
    when="A flexible time window has no length",
    code="ValidationException",
    message="The mode FLEXIBLE needs MaximumWindowInMinutes",
    source="EventBridge Scheduler API Reference, FlexibleTimeWindow",
    check=_wrong_window,
    is_quoted=False,
)
SCHEDULE_ZONE = Refusal(
    call=_SCHEDULE,
    when="The time zone of a schedule is not in the IANA database",
    code="ValidationException",
    message="The time zone '{zone}' is not in the IANA database",
    source="EventBridge Scheduler User Guide, schedule types: time zones",
    check=_unknown_zone,
    is_quoted=False,
)
SCHEDULE_TARGET = Refusal(
    call=_SCHEDULE,
    when="The target of a schedule is no ARN",
    code="ValidationException",
    message="Provided Arn is not in correct format.",
    source="EventBridge Scheduler API Reference, Target, Arn; words: those of PutTargets in "
    "moto, moto/events/models.py",
    check=_no_target_arn,
)
SCHEDULE_INPUT = Refusal(
    call=_SCHEDULE,
    when="The input for a function, a state machine or an event bus is no JSON",
    code="ValidationException",
    message="The input for this target must be well-formed JSON",
    source="EventBridge Scheduler API Reference, Target, Input",
    check=_wrong_target_input,
    is_quoted=False,
)
SCHEDULE_INPUT_SIZE = Refusal(
    call=_SCHEDULE,
    when="The input of a schedule, such as the manifest of a job, is larger than 256 KB",
    code="ValidationException",
    message="The input has {size} bytes, more than 256 KB",
    source="EventBridge Scheduler User Guide, quotas: maximum size of an invocation's payload",
    check=_large_input,
    is_quoted=False,
)

# --- Roles of state machines. ---

_MACHINE: Final = (
    "stepfunctions:CreateStateMachine, stepfunctions:UpdateStateMachine, AWS::StepFunctions::StateMachine"
)


def _may_not_log(given: Values) -> Values | None:
    logs = _key(given, "loggingConfiguration") or {}
    role = _role(_key(given, "roleArn"))
    writes = (_key(logs, "level") or "OFF") != "OFF" and _key(logs, "destinations")
    return {} if role and writes and not _may(role, "logs:CreateLogDelivery") else None


MACHINE_ROLE = Refusal(
    call=_MACHINE,
    when="The role of a state machine does not let Step Functions take it",
    code="AccessDeniedException",
    message="Neither the global service principal states.amazonaws.com, nor the regional one is authorized "
    "to assume the provided role.",
    source="lumigo-io/lumigo-CLI#83",
    check=untrusted("states.amazonaws.com", "roleArn"),
)
MACHINE_LOG_ROLE = Refusal(
    call=_MACHINE,
    when="A state machine has a log, and its role may not deliver logs yet",
    code="AccessDeniedException",
    message="The state machine IAM Role is not authorized to access the Log Destination",
    source="aws/aws-cdk#26432; aws-samples/serverless-patterns#102",
    check=_may_not_log,
)

# --- Bakes of images. ---


def _long_token(given: Values) -> Values | None:
    token = str(given.get("ClientToken") or "")
    return {} if len(token) > 64 or not token.isascii() else None  # noqa: PLR2004 - the row says it


CLIENT_TOKEN = Refusal(
    call="ec2:RunInstances",
    when="The token of a request, here the name of a bake, is longer than 64 characters",
    code="InvalidParameterValue",
    message="The client token must have at most 64 ASCII characters",
    source="Amazon EC2 API Reference, RunInstances, ClientToken: maximum 64 ASCII characters",
    check=_long_token,
    is_quoted=False,
)
