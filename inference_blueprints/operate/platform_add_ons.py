"""The EKS add-ons that a platform has."""

from __future__ import annotations

from inference_blueprints.spec.types import Spec
from inference_catalog.releases import ADD_ONS


def platform_add_ons(spec: Spec) -> tuple[str, ...]:
    """Return the names of a platform's EKS add-ons, in the order of the catalogue."""
    optional = {
        "amazon-cloudwatch-observability": spec.observability is not None,
        "aws-secrets-store-csi-driver-provider": any(model.weights.token_secret_arn for model in spec.models),
    }
    return tuple(name for name in ADD_ONS if optional.get(name, True))
