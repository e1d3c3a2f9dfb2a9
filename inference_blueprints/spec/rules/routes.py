"""Rules on the way to the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.deployments import each_deployment
from inference_blueprints.spec.types import Model

#: Each deployment is a target group of the one load balancer, whose quota cannot be raised
#: (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html).
MAXIMUM_DEPLOYMENTS = 100


def deployments_fit_the_load_balancer(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that the load balancer takes a target group for each deployment of all models."""
    count = sum(1 for _ in each_deployment(models))
    if count > MAXIMUM_DEPLOYMENTS:
        message = (
            f"got {count} deployments in all, the models' load balancer takes {MAXIMUM_DEPLOYMENTS}; "
            "make a second platform for some of the models"
        )
        yield Finding(("spec", "models"), message)
