"""The certificates with which the front door and other callers reach the models."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from inference_blueprints.render.callers.identities import planned_identities
from inference_blueprints.serving.types import ServingPlan
from inference_constructs.serving import CallerCertificates, CertifiedIdentity


class CertificatesStack(cdk.Stack):
    """A certificate authority, and a secret with a certificate for each caller and each deployment.

    It is complete when all certificates exist, so stacks that name a secret find its certificate.

    platform: `metadata.name`.
    plan: The serving plan, with a front door.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        plan: ServingPlan,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        certificates = CallerCertificates(
            self,
            "Callers",
            platform=platform,
            identities=[
                CertifiedIdentity(each.name, each.uri, each.host_names, each.usage)
                for each in planned_identities(plan)
            ],
        )
        #: ARN of the secret of each caller, and of each deployment by its release.
        self.secret_arns: Mapping[str, str] = certificates.secret_arns
