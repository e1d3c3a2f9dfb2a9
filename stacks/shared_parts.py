"""What the stacks of all targets share: parts of pools and of models, the canary, and whom alarms tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_blueprints.serving.traffic import further_routes, own_deployments
from inference_blueprints.serving.types import ModelPlan, SharedKvCachePlan, WeightsMirrorPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.types import Alarms, Model, Observability, Purchase, Spec
from inference_constructs.capacity import ReservedInstances
from inference_constructs.network import Gateway
from inference_constructs.serving import LAST_PRIORITY, FurtherAddress, listener_priorities
from inference_constructs.storage import CacheBucket
from inference_contracts.platform_keys import way_model

if TYPE_CHECKING:  # only platforms with a front door need its services
    from inference_constructs.front_door import PlatformKeySecret


@dataclass(frozen=True)
class ModelAddresses:
    """Where requests to a model's deployments come in."""

    host_name: str
    """Host name of the model."""
    priority: int
    """Priority of its rule on the listener."""
    own: Sequence[str]
    """Deployments behind it."""
    further: Sequence[FurtherAddress]
    """Host names of queues and streaming jobs that name deployments of their own."""
    door: str | None = None
    """Target group of the front door, if all these host names lead to it."""


def people_topic(scope: Construct, alarms: Alarms | None) -> sns.ITopic:
    """Return the topic that tells people: the one of the blueprint, or a new one.

    scope: The stack that has the alarms.
    alarms: Who is told. None if nobody is: then the topic has no subscription.
    """
    if alarms is not None and alarms.topic_arn is not None:
        return sns.Topic.from_topic_arn(scope, "Topic", alarms.topic_arn)
    from inference_constructs.observability import AlarmTopic

    return AlarmTopic(scope, "People", emails=(alarms.emails or []) if alarms else []).alarm_topic


def reserved_instances(purchase: Purchase) -> ReservedInstances | None:
    """Return the reserved capacity of a purchase option; None if it reserves nothing.

    purchase: The pool's section of the blueprint.
    """
    if purchase.reservation:
        return ReservedInstances(purchase.reservation.model_dump(exclude_none=True), "default")
    if purchase.capacity_block:
        return ReservedInstances(
            purchase.capacity_block.model_dump(include={"id", "tags"}, exclude_none=True), "capacity-block"
        )
    return None


def model_addresses(spec: Spec, model: Model, gateway: Gateway, door: str | None = None) -> ModelAddresses:
    """Return where requests to a model's deployments come in.

    spec: The blueprint's section, with all models.
    gateway: The models' load balancer.
    door: Target group of the front door, if host names of models lead to it.
    """
    priorities = _priorities(spec)
    return ModelAddresses(
        host_name=f"{model.name}.{gateway.zone_name}",
        priority=priorities[model.name],
        own=own_deployments(spec, model),
        further=[
            FurtherAddress(f"{label}.{gateway.zone_name}", priorities[label], names)
            for label, names in further_routes(spec, model).items()
        ],
        door=door,
    )


def door_priority(spec: Spec) -> int:
    """Return the priority of the front door's rule on the listener.

    Raises ValueError if the blueprint has no front door.
    """
    if spec.front_door is None:
        raise ValueError("the blueprint has no section `frontDoor`")
    return _priorities(spec)[spec.front_door.host]


def _priorities(spec: Spec) -> dict[str, int]:
    """Return the priorities of all rules on the listener, by the first label of their host names.

    That of the front door comes last where two hashes collide, so that it changes no rule of a model.
    """
    further = {label for each in spec.models for label in further_routes(spec, each)}
    models = listener_priorities([*(each.name for each in spec.models), *further])
    if spec.front_door is None:
        return models
    host = spec.front_door.host
    taken = set(models.values())
    priority = listener_priorities([host])[host]
    while priority in taken:
        priority = priority % LAST_PRIORITY + 1
    return {**models, host: priority}


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


def add_canary(
    stack: cdk.Stack,
    *,
    platform: str,
    observability: Observability,
    models: Sequence[Model],
    vpc: ec2.IVpc,
    gateway: Gateway,
    encryption_key: kms.IKey,
    door: DoorPlan | None,
    keys: PlatformKeySecret | None,
) -> None:
    """Add the function that asks every model, if the blueprint has one.

    stack: Stack of the platform's metrics.
    platform: `metadata.name`.
    observability, models: Sections of the blueprint.
    vpc, gateway: Network of the models, and their load balancer.
    encryption_key: KMS key of its log.
    door, keys: The front door, through which it asks, and the secret with its key. None without one.
    """
    if observability.canary is None:
        return
    from inference_constructs.observability import ModelCanary

    ModelCanary(
        stack,
        "Canary",
        platform=platform,
        models=[
            {
                "name": model.name,
                "url": f"https://{door.host_name}/v1"
                if door
                else f"{gateway.scheme}://{model.name}.{gateway.zone_name}/v1",
                "task": model.task,
                **({"asked": way_model("canary", model.name)} if door else {}),
            }
            for model in models
            # Batch waits while it has no workers, and nobody else asks the model.
            if not model.may_have_no_worker
        ],
        every_minutes=observability.canary.every_minutes,
        vpc=vpc,
        gateway=gateway,
        retention_days=observability.logs.retention_days,
        encryption_key=encryption_key,
        keys=keys,
    )
