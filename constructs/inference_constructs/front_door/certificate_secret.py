"""A secret with a certificate that the platform's own authority issues."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from inference_constructs.findings import acknowledge


class CertificateSecret(secretsmanager.Secret):
    """A secret with a certificate, its key, and the authorities that count.

    The build that issues certificates writes it, and the programs that show the certificate read it again
    when it has changed. It is deleted with its stack: another is issued at the next deployment.

    Parameters
    ----------
    description
        Whose certificate it is.
    """

    def __init__(self, scope: Construct, construct_id: str, *, description: str) -> None:
        super().__init__(
            scope, construct_id, description=description, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        acknowledge(self, {"SMG4": "CodeBuild renews the certificate, not a rotation function."})
