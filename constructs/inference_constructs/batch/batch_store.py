"""Where batch keeps its state."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_kms as kms


@dataclass(frozen=True)
class BatchStore:
    """Where batch keeps its state.

    Parameters
    ----------
    table_name, bucket_name
        Records and objects.
    encryption_key
        The key of both.
    """

    table_name: str
    bucket_name: str
    encryption_key: kms.IKey
