"""Rules on the Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_blueprints.spec.zones import platform_zones
from inference_contracts.errors import Finding

_KAFKA: Path = ("spec", "kafka")
#: Express clusters have three zones, with as many brokers in each:
#: https://docs.aws.amazon.com/msk/latest/developerguide/msk-broker-types-express.html
ZONES_OF_EXPRESS = 3
_ARN_REGION = 3


def brokers_are_known(spec: Spec) -> Iterator[Finding]:
    """Check that the size of Express brokers is one that AWS offers."""
    express = spec.kafka.express if spec.kafka else None
    sizes = list(catalog.broker_sizes())
    if express and express.instance_type not in sizes:
        kind = express.instance_type
        message = f"got {quote(kind)}, {allowed('size', sizes)}{suggestion(kind, sizes)}"
        yield Finding((*_KAFKA, "express", "instanceType"), message)


def brokers_are_in_three_zones(spec: Spec) -> Iterator[Finding]:
    """Check that Express brokers are divided evenly among three zones."""
    express = spec.kafka.express if spec.kafka else None
    if express is None:
        return
    if express.brokers % ZONES_OF_EXPRESS:
        message = (
            f"got {express.brokers}, each of {ZONES_OF_EXPRESS} zones has as many brokers; set a multiple of "
            f"{ZONES_OF_EXPRESS}"
        )
        yield Finding((*_KAFKA, "express", "brokers"), message)
    if spec.environment.region not in catalog.regions():
        return
    zones = len(platform_zones(spec.environment))
    if zones < ZONES_OF_EXPRESS:
        message = (
            f"Express brokers need {ZONES_OF_EXPRESS} zones, the platform has {zones}; name more in "
            "environment.availabilityZones, or use 'kafka.existing'"
        )
        yield Finding((*_KAFKA, "express"), message)


def cluster_is_in_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that an existing Kafka cluster is in the region of the platform."""
    existing = spec.kafka.existing if spec.kafka else None
    if existing is None:
        return
    region = existing.cluster_arn.split(":")[_ARN_REGION]
    if region != spec.environment.region:
        message = (
            f"is in {quote(region)}, the platform is in {quote(spec.environment.region)}; name a cluster of "
            "the platform's region"
        )
        yield Finding((*_KAFKA, "existing", "clusterArn"), message)
