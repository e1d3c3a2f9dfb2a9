"""What a function needs to know of the signal store."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms


@dataclass(frozen=True)
class SignalAccess:
    """How the signal store is reached.

    Parameters
    ----------
    host, port
        The cache's endpoint.
    cache_name, writer
        Names of the cache and of the user who writes.
    history_bucket_name
        Where the history is.
    encryption_key
        Key of the history.
    vpc, vpc_cidr
        Where the cache is reached.
    """

    host: str
    port: str
    cache_name: str
    writer: str
    history_bucket_name: str
    encryption_key: kms.IKey
    vpc: ec2.IVpc
    vpc_cidr: str
