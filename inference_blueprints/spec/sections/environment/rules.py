"""Rules on the region, zones and tags."""

from __future__ import annotations

import re
from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import allowed, duplicates, quote, suggestion
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Finding

_PATH = ("spec", "environment")
_ZONES_PATH = (*_PATH, "availabilityZones")

#: Tags that every tagged service accepts: AWS's general limits (AWS General Reference, "Tagging your AWS
#: resources"), IAM's characters, and non-empty values for EKS add-ons.
_MAXIMUM_TAG_KEY = 128
_MAXIMUM_TAG_VALUE = 256
_TAG_TEXT = re.compile(r"[\w \t.:/=+@-]+")


@rule
def region_is_known(spec: Spec) -> Iterator[Finding]:
    """Check that the catalogue knows the region's zones."""
    environment = spec.environment
    regions = catalog.regions()
    if environment.region not in regions:
        region = environment.region
        message = f"got {quote(region)}, {allowed('region', regions)}{suggestion(region, regions)}"
        yield Finding((*_PATH, "region"), message)


@rule
def zones_are_of_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that each zone is one of the region's."""
    environment = spec.environment
    known = catalog.regions().get(environment.region)
    if known is None:
        return
    for index, zone in usable(environment.availability_zones or ()):
        if zone not in known:
            zones = f"in {environment.region} {allowed('zone', known)}"
            message = f"got {quote(zone)}, {zones}{suggestion(zone, known)}"
            yield Finding((*_ZONES_PATH, index), message)


@rule
def zones_differ(spec: Spec) -> Iterator[Finding]:
    """Check that no zone is named twice."""
    for index, zone in duplicates(spec.environment.availability_zones or ()):
        yield Finding((*_ZONES_PATH, index), f"got {quote(zone)} twice; name each zone once")


@rule
def tags_are_allowed(spec: Spec) -> Iterator[Finding]:
    """Check that AWS accepts the tags."""
    path = (*_PATH, "tags")
    for key, value in spec.environment.tags.items():
        if key.lower().startswith("aws:") or not 0 < len(key) <= _MAXIMUM_TAG_KEY:
            message = (
                f"got the key {quote(key)}, expected 1 to {_MAXIMUM_TAG_KEY} characters that do not "
                "begin with aws:"
            )
            yield Finding((*path, key), message)
        if len(value) > _MAXIMUM_TAG_VALUE:
            message = f"got {len(value)} characters, at most {_MAXIMUM_TAG_VALUE} are allowed; shorten it"
            yield Finding((*path, key), message)
        for text in (key, value):
            if not _TAG_TEXT.fullmatch(text):
                message = f"got {quote(text)}, expected letters, digits, spaces or .:/=+-_@"
                yield Finding((*path, key), message)


@rule
def version_is_supported(spec: Spec) -> Iterator[Finding]:
    """Check that the library is made for the Kubernetes version."""
    known = shipped().kubernetes_versions
    if spec.cluster.eks and spec.cluster.eks.version not in known:
        version = spec.cluster.eks.version
        message = f"got {quote(version)}, {allowed('version', tuple(known))}"
        yield Finding(("spec", "cluster", "eks", "version"), message)
