"""AWS permissions of a model's pods to read its weights and its token."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from constructs import Construct

from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.serving.weights_permissions import (
    keep_artefacts,
    read_certificates,
    read_secret,
    read_weights,
)


class WeightsIdentity(PodIdentity):
    """A role for the service accounts of a model's pods.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    namespace, service_accounts
        Namespace and service accounts of the pods.
    s3_prefix
        ``s3://bucket/prefix`` of the weights, if they are in S3.
    has_manifest
        Whether they are the platform's copy, which has a manifest.
    secret_arn
        Secret with the download token, if the weights are gated.
    artefact_prefixes
        ``s3://bucket/prefix`` of the compiled artefacts that the pods keep.
    certificate_arns
        Secrets with the certificates that sidecars of the pods show to callers.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str,
        service_accounts: Sequence[str],
        s3_prefix: str | None = None,
        has_manifest: bool = False,
        secret_arn: str | None = None,
        artefact_prefixes: Sequence[str] = (),
        certificate_arns: Sequence[str] = (),
    ) -> None:
        stack = cdk.Stack.of(scope)
        statements = [
            *(read_weights(stack, s3_prefix, has_manifest=has_manifest) if s3_prefix else []),
            *(read_secret(stack, secret_arn) if secret_arn else []),
            *(
                statement
                for index, prefix in enumerate(artefact_prefixes)
                for statement in keep_artefacts(stack, prefix, str(index))
            ),
            *([read_certificates(certificate_arns)] if certificate_arns else []),
        ]
        super().__init__(
            scope,
            construct_id,
            cluster_name=cluster_name,
            namespace=namespace,
            service_accounts=service_accounts,
            statements=statements,
        )
        acknowledge_wildcards(
            self,
            statements,
            "Weights are many objects below one prefix, and the KV cache uses a whole bucket. The owner of "
            "the weights and the secret chooses their KMS key. It can be used only through S3 and Secrets "
            "Manager, and only for these objects.",
        )
