"""Bakes container images into snapshots for nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

import inference_catalog as catalog
from inference_blueprints.spec.types import Pool
from inference_catalog import image_cache
from inference_catalog.releases import NodeImage
from inference_constructs.capacity import ImageBaker


class ImageCacheStack(cdk.Stack):
    """A state machine that `blueprints image-cache bake` starts.

    platform: `metadata.name`.
    pools: Pools of the blueprint that use a snapshot.
    image: Image that nodes boot.
    vpc: VPC of the instance that pulls images.
    tags: Tags of instances, volumes and snapshots.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        pools: Sequence[Pool],
        image: NodeImage,
        vpc: ec2.IVpc,
        tags: Mapping[str, str],
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        names = {each.name for pool in pools for each in pool.types}
        baker = ImageBaker(
            self,
            "Baker",
            platform=platform,
            image=image,
            architectures=sorted({catalog.instance_type(name).architecture for name in names}),
            vpc=vpc,
            tags=tags,
        )
        cdk.CfnOutput(self, image_cache.STATE_MACHINE_OUTPUT, value=baker.state_machine.ref)
        cdk.CfnOutput(self, image_cache.BOTTLEROCKET_OUTPUT, value=image_cache.variant(image))
