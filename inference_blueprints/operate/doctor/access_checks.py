"""Whether the user can deploy at all: credentials, CDK command line, bootstrapped environment, roles."""

from __future__ import annotations

import fnmatch
import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints import resources, tools
from inference_blueprints.operate.aws.account import SIGN_IN, SignInError
from inference_blueprints.operate.aws.account_roles import (
    SPOT_ROLE,
    SPOT_SERVICE,
    api_log_role,
    has_api,
    spot_pools,
    spot_role_exists,
)
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import Model
from inference_contracts.errors import UserError

# Checks that weights can be read: tokens of gated models, prefixes in S3.

_CURRENT = "AWSCURRENT"
_MISSING_BUCKET = {"NoSuchBucket", "404"}


def weights(context: DoctorContext) -> Iterator[CheckResult]:
    """Check each model's weights, without requests to the Hugging Face Hub."""
    for model in context.blueprint.spec.models:
        if model.weights.s3:
            yield _in_s3(context, model, model.weights.s3)
        elif model.weights.token_secret_arn:
            yield _token(context, model, model.weights.token_secret_arn)
        else:
            yield _public(context, model)


def _public(context: DoctorContext, model: Model) -> CheckResult:
    """Check in the catalogue that a model without a token needs none."""
    repository = model.weights.hugging_face or ""
    known = model.weights.entries.get(repository)
    if known is not None and known.gated:
        command = context.aws("secretsmanager create-secret --name hugging-face-token --secret-string ...")
        message = f"{model.name}: {repository} is gated; set tokenSecretArn to a secret with a token"
        return CheckResult("weights", "error", message, command)
    return CheckResult("weights", "ok", f"{model.name}: {repository} needs no token")


def _token(context: DoctorContext, model: Model, arn: str) -> CheckResult:
    """Check a secret without reading its value."""
    secrets = context.account.client("secretsmanager")
    try:
        secret = secrets.describe_secret(SecretId=arn)
    except secrets.exceptions.ResourceNotFoundException:
        command = context.aws("secretsmanager create-secret --name hugging-face-token --secret-string ...")
        return CheckResult("weights", "error", f"{model.name}: the secret {arn} does not exist", command)
    if "DeletedDate" in secret:
        command = context.aws(f"secretsmanager restore-secret --secret-id {arn}")
        return CheckResult("weights", "error", f"{model.name}: the secret {arn} is being deleted", command)
    if not any(_CURRENT in stages for stages in secret.get("VersionIdsToStages", {}).values()):
        command = context.aws(f"secretsmanager put-secret-value --secret-id {arn} --secret-string ...")
        return CheckResult("weights", "error", f"{model.name}: the secret {arn} is empty", command)
    return CheckResult("weights", "ok", f"{model.name}: the secret with the token exists")


def _in_s3(context: DoctorContext, model: Model, address: str) -> CheckResult:
    """Check that there are files below a prefix."""
    bucket, _, path = address.removeprefix("s3://").partition("/")
    # Workers list a folder: `llama` without the slash would also find `llama-70b/`.
    prefix = f"{path.rstrip('/')}/" if path else ""
    command = f"aws s3 cp --recursive FOLDER {address}"
    try:
        listing = context.account.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except ClientError as error:
        if error.response["Error"]["Code"] in _MISSING_BUCKET:
            message = f"{model.name}: the bucket {bucket} does not exist"
            return CheckResult("weights", "error", message, f"aws s3 mb s3://{bucket}")
        raise
    if not listing.get("KeyCount"):
        return CheckResult("weights", "error", f"{model.name}: there are no files below {address}", command)
    return CheckResult("weights", "ok", f"{model.name}: {address} has files")


#: `requiresBootstrapStackVersion` of the stacks that aws-cdk-lib 2.275 writes (cloud assembly manifest).
REQUIRED_BOOTSTRAP_VERSION = 6
_BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"


def credentials(context: DoctorContext) -> CheckResult:
    """Check that there are credentials, and that they are for the blueprint's account."""
    try:
        number = context.account.number
        context.account.demand(context.environment.account)
    except SignInError as error:
        return CheckResult("credentials", "error", error.reason, SIGN_IN)
    except UserError as error:
        return CheckResult("credentials", "error", str(error), SIGN_IN)
    return CheckResult("credentials", "ok", f"account {number}, region {context.account.region}")


def command_line(_context: DoctorContext) -> Iterator[CheckResult]:
    """Check that the pinned CDK command line runs.

    _context: Not used: the command line belongs to this library.
    """
    name = "CDK command line"
    package = json.loads((resources.root() / "package.json").read_text(encoding="utf-8"))
    pinned = package["dependencies"]["aws-cdk"]
    try:
        result = subprocess.run([*tools.cdk(), "--version"], capture_output=True, text=True, check=False)
    except (UserError, OSError) as error:
        yield CheckResult(name, "error", str(error), "make setup")
        return
    version = result.stdout.split(" ")[0].strip()
    if version == pinned:
        yield CheckResult(name, "ok", version)
    else:
        found = version or result.stderr.strip()
        yield CheckResult(name, "error", f"got {found}, {pinned} is pinned", "make setup")


def kubectl(context: DoctorContext) -> Iterator[CheckResult]:
    """Check the kubectl of the path, where the one of this library does not run. A deployment needs none."""
    if context.blueprint.spec.cluster.eks is None:
        return
    if tools.layer_runs_here():
        yield CheckResult("kubectl", "ok", "the one of this library")
        return
    try:
        yield CheckResult("kubectl", "ok", str(tools.kubectl()))
    except UserError as error:
        message = f"{error}; `blueprints verify`, `upgrade` and `benchmark` ask the cluster with it"
        yield CheckResult("kubectl", "warning", message)


def bootstrap(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that account and region are bootstrapped with a sufficient version."""
    ssm = context.account.client("ssm")
    command = f"blueprints bootstrap {context.name_or_path}"
    try:
        version = int(ssm.get_parameter(Name=_BOOTSTRAP_PARAMETER)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        place = f"account {context.account.number} is not bootstrapped in {context.account.region}"
        yield CheckResult("bootstrap", "error", place, command)
        return
    if version < REQUIRED_BOOTSTRAP_VERSION:
        message = f"got version {version}, {REQUIRED_BOOTSTRAP_VERSION} is needed"
        yield CheckResult("bootstrap", "error", message, command)
    else:
        yield CheckResult("bootstrap", "ok", f"version {version}")


def spot_role(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that the account has EC2's role for Spot Instances, if a pool uses them."""
    pools = spot_pools(context.blueprint)
    if not pools:
        return
    if spot_role_exists(context.account):
        yield CheckResult("Spot role", "ok", SPOT_ROLE)
        return
    message = f"the account has no role {SPOT_ROLE}; without it no node of {', '.join(pools)} starts"
    command = f"aws iam create-service-linked-role --aws-service-name {SPOT_SERVICE}"
    yield CheckResult("Spot role", "error", message, command)


def api_logging(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that API Gateway may write logs in this account and region, if the platform has an API."""
    name = "API logging"
    if not has_api(context.blueprint):
        return
    role = api_log_role(context.account)
    if role:
        yield CheckResult(name, "ok", role)
        return
    message = (
        f"API Gateway has no role for CloudWatch Logs in {context.account.region}; without it the "
        "stages of batch's API and of the API of keys cannot be created"
    )
    yield CheckResult(name, "error", message, f"blueprints bootstrap {context.name_or_path}")


#: The key that AWS manages for SNS. Nobody can change its policy.
_AWS_KEY = "alias/aws/sns"
_CLOUDWATCH = "cloudwatch.amazonaws.com"
#: What a publisher needs of the key of an encrypted topic: Amazon SNS Developer Guide, "Managing Amazon SNS
#: encryption keys and costs", and "Enable compatibility between event sources from AWS services and encrypted
#: topics".
_KEY_ACTIONS = ("kms:GenerateDataKey*", "kms:Decrypt")


def alarm_topic(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that CloudWatch and the controllers may use the key of the user's topic.

    The key that AWS manages for SNS does not let CloudWatch publish
    (https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger). A key of the user's lets
    a controller's role use it only if its policy says so, because nobody knows the key when the role is
    written.
    """
    name, spec = "alarm topic", context.blueprint.spec
    alarms = spec.observability.alarms if spec.observability else None
    if alarms is None or alarms.topic_arn is None:
        return
    arn, sns = alarms.topic_arn, context.account.client("sns")
    try:
        key = sns.get_topic_attributes(TopicArn=arn)["Attributes"].get("KmsMasterKeyId")
    except sns.exceptions.NotFoundException:
        command = context.aws(f"sns create-topic --name {arn.rpartition(':')[2]}")
        yield CheckResult(name, "error", f"{arn} does not exist", command)
        return
    if key is None:
        yield CheckResult(name, "ok", f"{arn} has no KMS key")
        return
    if key.endswith(_AWS_KEY):
        message = f"{arn} has the key {_AWS_KEY}, with which CloudWatch cannot publish; use a key of your own"
        yield CheckResult(name, "error", message)
        return
    kms = context.account.client("kms")
    # Only DescribeKey takes an alias.
    identifier = kms.describe_key(KeyId=key)["KeyMetadata"]["KeyId"]
    policy = json.loads(kms.get_key_policy(KeyId=identifier, PolicyName="default")["Policy"])
    publishers = {"CloudWatch's alarms": {"Service": _CLOUDWATCH}}
    if controllers_of(spec):
        publishers["the controllers' messages"] = {"AWS": "*"}
    refused = [says for says, principal in publishers.items() if not _may_use(policy, principal)]
    if not refused:
        yield CheckResult(name, "ok", f"{arn} has a KMS key that its publishers may use")
        return
    region = context.account.region
    via = f'"kms:ViaService": "sns.{region}.amazonaws.com", "kms:CallerAccount": "{context.account.number}"'
    add = {
        "CloudWatch's alarms": f'{{"Service": "{_CLOUDWATCH}"}}',
        "the controllers' messages": f'{{"AWS": "*"}} with the condition {{"StringEquals": {{{via}}}}}',
    }
    yield CheckResult(
        name,
        "error",
        f"the key {key} of {arn} refuses {' and '.join(refused)}; allow {' and '.join(_KEY_ACTIONS)} in its"
        f" policy to {' and to '.join(add[each] for each in refused)}",
        context.aws(f"kms put-key-policy --key-id {identifier} --policy-name default --policy file://POLICY"),
    )


def _may_use(policy: Mapping[str, Any], principal: Mapping[str, str]) -> bool:
    """Return whether a key policy names a principal for all actions of a publisher.

    Conditions are not evaluated. The account itself (``root``) leaves the decision to policies of IAM, and no
    role of the platform has a permission for the key.
    """
    allowed = {
        action
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow" and _names(statement.get("Principal", {}), principal)
        for action in _listed(statement.get("Action", []))
    }
    return all(
        any(fnmatch.fnmatchcase(wanted.rstrip("*"), action) for action in allowed) for wanted in _KEY_ACTIONS
    )


def _names(principals: Any, wanted: Mapping[str, str]) -> bool:
    if principals == "*":
        return True
    return any(
        value in _listed(principals.get(kind, [])) or "*" in _listed(principals.get(kind, []))
        for kind, value in wanted.items()
    )


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
