"""A shipped blueprint with other numbers of workers."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint


def scaled_blueprint(name: str, replicas: Mapping[str, int]) -> Blueprint:
    """Return a shipped blueprint whose first deployment has other numbers of workers.

    name: The shipped blueprint.
    replicas: Number of workers by role: ``aggregated``, or ``prefill`` and ``decode``.
    """
    document = load_blueprint(name).blueprint.model_dump(by_alias=True, exclude_unset=True)
    deployment = document["spec"]["models"][0]["deployments"][0]
    roles = deployment.get("disaggregated") or deployment
    for role, count in replicas.items():
        roles[role]["replicas"] = count
    return Blueprint.model_validate(document)
