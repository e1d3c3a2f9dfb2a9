"""What the stacks of a model share on all targets."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.serving.types import ModelPlan, SharedKvCachePlan, WeightsMirrorPlan
from inference_constructs.storage import CacheBucket


def add_kv_cache(
    scope: Construct, shared: SharedKvCachePlan | None, encryption_key: kms.IKey
) -> CacheBucket | None:
    """Add the bucket of the shared KV cache. A change of the block format replaces the bucket.

    scope: Stack of the model.
    shared: The cache, of the model's plan. None if its workers share none.
    encryption_key: KMS key of the objects.
    """
    if shared is None:
        return None
    return CacheBucket(
        scope,
        f"KvCache{shared.content.capitalize()}",
        encryption_key=encryption_key,
        expire_days=shared.expire_days,
    )


def mirror_address(weights_bucket: str, mirror: WeightsMirrorPlan) -> str:
    """Return the prefix of a copied model and its manifest.

    weights_bucket: Name of the bucket, which may be a reference.
    mirror: The copy.
    """
    return f"s3://{weights_bucket}/{mirror.prefix}"


def artefact_prefixes(plan: ModelPlan, bucket: str) -> tuple[str, ...]:
    """Return the prefixes below which the model's workers keep compiled artefacts, each once."""
    keys = {
        process.artefacts.key
        for deployment in plan.deployments
        for process in deployment.processes
        if process.artefacts
    }
    return tuple(f"s3://{bucket}/{key}" for key in sorted(keys))
