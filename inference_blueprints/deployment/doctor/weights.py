"""Whether the weights can be read: tokens of gated models, prefixes in S3."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from inference_blueprints import catalog
from inference_blueprints.deployment.doctor.patient import Patient
from inference_blueprints.deployment.observation import Observation
from inference_blueprints.spec.types import Model

_CURRENT = "AWSCURRENT"
_MISSING_BUCKET = {"NoSuchBucket", "404"}


def weights(patient: Patient) -> Iterator[Observation]:
    """Look at each model's weights; the Hugging Face Hub itself is not asked.

    Parameters
    ----------
    patient
        Account and blueprint.
    """
    for model in patient.blueprint.spec.models:
        if model.weights.s3:
            yield _in_s3(patient, model, model.weights.s3)
        elif model.weights.token_secret_arn:
            yield _token(patient, model, model.weights.token_secret_arn)
        else:
            yield _public(patient, model)


def _public(patient: Patient, model: Model) -> Observation:
    """Compare a model without a token with what the catalogue knows of its repository."""
    repository = model.weights.hugging_face or ""
    known = catalog.models().get(repository)
    if known is not None and known.gated:
        command = patient.aws("secretsmanager create-secret --name hugging-face-token --secret-string ...")
        message = f"{model.name}: {repository} is gated; name a secret with a token in tokenSecretArn"
        return Observation("weights", "error", message, command)
    return Observation("weights", "ok", f"{model.name}: {repository} needs no token")


def _token(patient: Patient, model: Model, arn: str) -> Observation:
    """Look at a secret without reading what is in it."""
    secrets = patient.account.client("secretsmanager")
    try:
        secret = secrets.describe_secret(SecretId=arn)
    except secrets.exceptions.ResourceNotFoundException:
        command = patient.aws("secretsmanager create-secret --name hugging-face-token --secret-string ...")
        return Observation("weights", "error", f"{model.name}: there is no secret {arn}", command)
    if "DeletedDate" in secret:
        command = patient.aws(f"secretsmanager restore-secret --secret-id {arn}")
        return Observation("weights", "error", f"{model.name}: the secret {arn} is being deleted", command)
    if not any(_CURRENT in stages for stages in secret.get("VersionIdsToStages", {}).values()):
        command = patient.aws(f"secretsmanager put-secret-value --secret-id {arn} --secret-string ...")
        return Observation("weights", "error", f"{model.name}: the secret {arn} is empty", command)
    return Observation("weights", "ok", f"{model.name}: the secret with the token is there")


def _in_s3(patient: Patient, model: Model, address: str) -> Observation:
    """Find out whether anything lies below a prefix."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    command = f"aws s3 cp --recursive FOLDER {address}"
    try:
        listing = patient.account.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except ClientError as error:
        if error.response["Error"]["Code"] in _MISSING_BUCKET:
            message = f"{model.name}: there is no bucket {bucket}"
            return Observation("weights", "error", message, f"aws s3 mb s3://{bucket}")
        raise
    if not listing.get("KeyCount"):
        return Observation("weights", "error", f"{model.name}: nothing lies below {address}", command)
    return Observation("weights", "ok", f"{model.name}: {address} holds files")
