"""The image of the front door: the policy process and Envoy."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.program_image import ProgramImage
from inference_runtime import runtime_directory


class DoorImage(ProgramImage):
    """The image of the front door, which CodeBuild builds in the account.

    The deployment waits for it: rules of the load balancer lead to the door as soon as it is deployed.

    Parameters
    ----------
    encryption_key
        KMS key of the images.
    """

    def __init__(self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey) -> None:
        runtime = runtime_directory()
        code = runtime / "front_door"
        super().__init__(
            scope,
            construct_id,
            # Of `signals`, the policy process has the tokens for the cache.
            packages=[code, runtime / "certificate_files", runtime / "signals"],
            folder=code / "image",
            encryption_key=encryption_key,
        )
