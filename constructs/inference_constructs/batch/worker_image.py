"""The image of batch workers."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.program_image import ProgramImage
from inference_runtime import runtime_directory


class WorkerImage(ProgramImage):
    """The image of batch workers, which CodeBuild builds in the account.

    Parameters
    ----------
    encryption_key
        KMS key of the images.
    wait
        Whether the deployment waits until the build has finished.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey, wait: bool = True
    ) -> None:
        code = runtime_directory() / "batch"
        super().__init__(
            scope,
            construct_id,
            packages=[code],
            folder=code / "worker",
            encryption_key=encryption_key,
            wait=wait,
        )
