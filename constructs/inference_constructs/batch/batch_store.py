"""Where batch keeps its state."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_kms as kms


@dataclass(frozen=True)
class BatchStore:
    """Where batch keeps its state.

    Parameters
    ----------
    table_name, progress_table_name, bucket_name
        Records, how far jobs are, and objects.
    encryption_key
        The key of all three.
    """

    table_name: str
    progress_table_name: str
    bucket_name: str
    encryption_key: kms.IKey

    def progress_table_arn(self, stack: cdk.Stack) -> str:
        """Return the ARN of the table of how far jobs are.

        Parameters
        ----------
        stack
            One of the same account and region.
        """
        return stack.format_arn(service="dynamodb", resource="table", resource_name=self.progress_table_name)
