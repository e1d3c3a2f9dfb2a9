"""Rules on the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import allowed, quote
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Finding


def version_is_supported(spec: Spec) -> Iterator[Finding]:
    """Check that the library is made for the Kubernetes version."""
    known = shipped().kubernetes_versions
    if spec.cluster.eks and spec.cluster.eks.version not in known:
        version = spec.cluster.eks.version
        message = f"got {quote(version)}, {allowed('version', tuple(known))}"
        yield Finding(("spec", "cluster", "eks", "version"), message)
