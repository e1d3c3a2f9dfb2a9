"""Rules on the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import allowed, quote

#: kubectl 1.35 applies the manifests; it supports servers one minor version older or newer
#: (kubernetes.io, "Version Skew Policy"); aws-cdk-lib 2.275's eks_v2 ends at 1.36.
KUBERNETES_VERSIONS = ("1.34", "1.35", "1.36")


def version_is_supported(spec: Spec) -> Iterator[Finding]:
    """Check that the library is made for the Kubernetes version."""
    if spec.cluster.eks and spec.cluster.eks.version not in KUBERNETES_VERSIONS:
        version = spec.cluster.eks.version
        message = f"got {quote(version)}, {allowed('version', KUBERNETES_VERSIONS)}"
        yield Finding(("spec", "cluster", "eks", "version"), message)
