"""Keys with which the platform's own programs call models through the front door: a secret for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.code_staging import function_code
from inference_constructs.findings import acknowledge_grants
from inference_constructs.front_door.door_store import DoorStore
from inference_contracts import platform_keys as names
from inference_contracts.platform_keys import KeyOwner, KeyOwners
from inference_runtime import runtime_directory

#: File of the owners, beside the function's code: all variables of a function share 4 KB.
_OWNERS: Final = "key_owners.json"


@dataclass(frozen=True)
class PlatformKeySecret:
    """The secret with the keys of a program, for the stack that runs it."""

    arn: str
    """Its ARN: `SECRET_VARIABLE` of the program."""
    encryption_key: kms.IKey
    """Its KMS key."""

    def grant_read(self, grantee: iam.IGrantable) -> Sequence[iam.Grant]:
        """Allow reading this secret, and using its KMS key for that alone.

        Secrets Manager calls KMS as the caller (AWS Secrets Manager User Guide, "Secret encryption and
        decryption in AWS Secrets Manager": the encryption context has the ARN of the secret).

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        return [
            iam.Grant.add_to_principal(
                grantee=grantee, actions=["secretsmanager:GetSecretValue"], resource_arns=[self.arn]
            ),
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["kms:Decrypt"],
                conditions={
                    "StringEquals": {
                        "kms:ViaService": f"secretsmanager.{cdk.Aws.REGION}.{cdk.Aws.URL_SUFFIX}",
                        "kms:EncryptionContext:SecretARN": self.arn,
                    }
                },
                resource_arns=[self.encryption_key.key_arn],
            ),
        ]


class PlatformKeySecrets(Construct):
    """A secret for each program of the platform, and the function that makes and rotates all keys.

    A rotation starts at once when a schedule is created or updated (AWS CloudFormation,
    `AWS::SecretsManager::RotationSchedule`, `RotateImmediatelyOnUpdate`), and CloudFormation waits for no
    end of it. The schedule names a version of the function, so it is updated when the function, or who has
    which keys, changes. Until its first rotation, a secret has a random password, which no program takes for
    keys.

    Parameters
    ----------
    platform
        `metadata.name`.
    owners
        Programs that have keys. Their tags are distinct.
    store
        Tables and buckets of the front door.
    role_path
        IAM path of the function's role.

    Attributes
    ----------
    secrets
        The secret of each owner, by `KeyOwner.tag`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        owners: Sequence[KeyOwner],
        store: DoorStore,
        role_path: str = "/",
    ) -> None:
        super().__init__(scope, construct_id)
        key = kms.Key.from_key_arn(self, "Key", store.encryption_key.key_arn)
        self.function = add_function(
            self,
            "Rotate",
            code=function_code(
                runtime_directory() / "key_rotation",
                documents={_OWNERS: KeyOwners(tuple(owners)).to_json()},
            ),
            handler="key_rotation.handler.handle",
            timeout_seconds=60,
            memory_mib=256,
            environment={
                names.ROTATION_TABLE: store.keys_table,
                names.ROTATION_AUDIT_BUCKET: store.audit_bucket,
                names.ROTATION_PLATFORM: platform,
                names.ROTATION_OWNERS: _OWNERS,
            },
            role_path=role_path,
        )
        secrets = {each.tag: self._add_secret(each, key) for each in owners}
        grants = [
            store.grant_administer_keys(self.function),
            store.grant_use_key(self.function, "secretsmanager"),
            iam.Grant.add_to_principal(
                grantee=self.function,
                actions=[
                    "secretsmanager:DescribeSecret",
                    "secretsmanager:GetSecretValue",
                    "secretsmanager:PutSecretValue",
                    "secretsmanager:UpdateSecretVersionStage",
                ],
                resource_arns=[each.secret_arn for each in secrets.values()],
            ),
        ]
        acknowledge_grants(self, grants, "Each act is an object of its own, whose name has its time.")
        version = self.function.current_version
        version.add_permission(
            "SecretsManager",
            principal=iam.ServicePrincipal("secretsmanager.amazonaws.com"),
            source_account=cdk.Stack.of(self).account,
        )
        for tag, secret in secrets.items():
            self._schedule(tag, secret, version).node.add_dependency(self.function.role, version)
        self.secrets = {tag: PlatformKeySecret(each.secret_arn, key) for tag, each in secrets.items()}

    def _add_secret(self, owner: KeyOwner, key: kms.IKey) -> secretsmanager.Secret:
        secret = secretsmanager.Secret(
            self,
            f"Secret-{owner.tag.replace('/', '-')}",
            description=f"Keys of {owner.tag} for the front door",
            encryption_key=key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        cdk.Tags.of(secret).add(names.OWNER_TAG, owner.tag)
        return secret

    def _schedule(
        self, tag: str, secret: secretsmanager.Secret, version: lambda_.IVersion
    ) -> secretsmanager.RotationSchedule:
        identifier = tag.replace("/", "-")
        return secretsmanager.RotationSchedule(
            self,
            f"Rotation-{identifier}",
            automatically_after=cdk.Duration.days(names.ROTATION_DAYS),
            # CDK would let the role name the version, which the function depends on, and read random
            # passwords. So it gets an imported function, and no permissions.
            rotation_lambda=lambda_.Function.from_function_attributes(
                self, f"Version-{identifier}", function_arn=version.function_arn, skip_permissions=True
            ),
            secret=secret,
        )
