"""A rule on the load balancer of the models."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.rules.deployments import each_deployment
from inference_blueprints.spec.types import Spec
from inference_contracts.errors import Finding

#: Each deployment is a target group of the only load balancer, whose quota cannot be raised
#: (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html).
MAXIMUM_DEPLOYMENTS = 100


def deployments_fit_the_load_balancer(spec: Spec) -> Iterator[Finding]:
    """Check that the load balancer has target groups for all deployments."""
    count = sum(1 for _ in each_deployment(spec))
    if count > MAXIMUM_DEPLOYMENTS:
        message = (
            f"got {count} deployments in all, the models' load balancer supports {MAXIMUM_DEPLOYMENTS}; "
            "create a second platform for some of the models"
        )
        yield Finding(("spec", "models"), message)
