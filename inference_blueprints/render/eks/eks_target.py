"""Amazon EKS as a target: each deployment is a release of a Helm chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from inference_blueprints.render.eks.prometheus_size import series_findings
from inference_blueprints.render.eks.rules_size import rules_findings
from inference_blueprints.render.target import Target
from inference_blueprints.serving.types import ModelPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding


class EksTarget(Target[dict[str, Any]]):
    """Renders deployments as values of their charts.

    weights_bucket: Name of the platform's weights bucket. Models with mirrored weights need it.
    kv_cache_bucket: Name of the model's KV cache bucket. None if its workers share none.
    observed_platform: `metadata.name`, if the pods are scraped; None without observability.
    shifted: Whether the capacity shift sets the floors of elastic processes.
    certificate_arns: ARN of the secret with the certificate of each release. Empty without a front door.
    """

    def __init__(
        self,
        *,
        weights_bucket: str | None = None,
        kv_cache_bucket: str | None = None,
        observed_platform: str | None = None,
        shifted: bool = False,
        certificate_arns: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._weights_bucket = weights_bucket
        self._kv_cache_bucket = kv_cache_bucket
        self._observed_platform = observed_platform
        self._shifted = shifted
        self._certificate_arns = certificate_arns

    @classmethod
    def findings(cls, blueprint: Blueprint) -> Iterator[Finding]:
        """Yield a finding for each part of a blueprint that does not fit on EKS.

        blueprint: A blueprint that may have invalid values.
        """
        yield from rules_findings(blueprint)
        yield from series_findings(blueprint)

    def render(self, model: ModelPlan) -> tuple[dict[str, Any], ...]:
        """Return the values of each deployment's chart, in the order of the plan.

        Raises ValueError if a process waits for mirrored weights and there is no weights bucket, or admits
            known callers and has no certificate.
        """
        from inference_blueprints.render.eks.model_values import deployment_values

        return tuple(
            deployment_values(
                deployment,
                weights_bucket=self._weights_bucket,
                kv_cache_bucket=self._kv_cache_bucket,
                observed_platform=self._observed_platform,
                shifted=self._shifted,
                certificate_arn=self._certificate_arns.get(deployment.release),
            )
            for deployment in model.deployments
        )
