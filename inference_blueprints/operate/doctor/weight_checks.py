"""Checks that weights can be read: tokens of gated models, prefixes in S3."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.types import Model

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
