"""Stores that are read at request time, and that outlive the stack that writes them."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.spec.types import SignalStore
from inference_constructs.signals import SignalAccess, SignalCache


class StoresStack(cdk.Stack):
    """The cache of signals.

    signal_store: Section of the blueprint.
    stream_signals: Name of the signal of each streaming job, by job.
    vpc, vpc_cidr: VPC from which the cache is reachable, and its IPv4 range.
    encryption_key: KMS key of the cache.
    retain: Whether a snapshot is kept when the stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        signal_store: SignalStore,
        stream_signals: Mapping[str, str],
        vpc: ec2.IVpc,
        vpc_cidr: str,
        encryption_key: kms.IKey,
        history_bucket_name: str,
        retain: bool,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env, termination_protection=True)
        cache = SignalCache(
            self,
            "Signals",
            vpc=vpc,
            vpc_cidr=vpc_cidr,
            encryption_key=encryption_key,
            max_gb=signal_store.valkey.max_gb,
            retain=retain,
            stream_signals=stream_signals,
        )
        cdk.CfnOutput(self, "SignalsHost", value=cache.host)
        cdk.CfnOutput(self, "SignalsPort", value=cache.port)
        cdk.CfnOutput(self, "SignalsCache", value=cache.cache_name)
        cdk.CfnOutput(self, "SignalsReader", value=cache.reader)
        self.signals = SignalAccess.from_cache(
            cache,
            history_bucket_name=history_bucket_name,
            encryption_key=encryption_key,
            vpc=vpc,
            vpc_cidr=vpc_cidr,
        )
