"""Prepares an elastic run: the rendered objects, the cold starts, and what Prometheus scrapes."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_blueprints.serving.estimates.worker_start import worker_start
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_contracts.metric_labels import SYSTEM_POOL, TargetLabels
from inference_local.prometheus.local_prometheus import ScrapeTarget
from inference_local.scaling.elastic_run import TIME_FACTOR
from inference_local.scaling.operator_stand_in import ElasticRole
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.platform_parts import PlatformPart

_SCALED_OBJECTS = "*/*/scaledobject.keda.sh-*.yaml"


def elastic_roles(
    blueprint: Blueprint, serving: LocalServing, records: Path
) -> list[tuple[ElasticRole, ScaledObject]]:
    """Return the elastic roles of a running platform, each with the object that its chart rendered.

    records: Folder of the emulator's recorded Kubernetes objects.
    Raises UserError if a role has no object, or one that cannot be evaluated.
    """
    manifests = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in records.glob(_SCALED_OBJECTS)]
    by_name: dict[str, Any] = {each["metadata"]["name"]: each for each in manifests}
    found = []
    for deployment in serving.deployments:
        for workers in deployment.workers:
            if workers.planned.scaling is not None:
                role = ElasticRole(deployment, workers, _start_seconds(blueprint, deployment, workers.role))
                if role.name not in by_name:
                    raise UserError(
                        f"{role.name}: no ScaledObject of this name was deployed; found {', '.join(by_name)}"
                    )
                rules = ScaledObject.read(by_name[role.name])
                found.append((role, rules.with_limits(workers.maximum, workers.targets)))
    return found


def lent_roles(blueprint: Blueprint, serving: LocalServing) -> list[ElasticRole]:
    """Return the roles of a running platform that serve batch alone, whose number the shift sets."""
    return [
        ElasticRole(deployment, workers, _start_seconds(blueprint, deployment, workers.role))
        for deployment in serving.deployments
        for workers in deployment.workers
        if workers.planned.lent_most is not None
    ]


def scrape_targets(blueprint: Blueprint, serving: LocalServing) -> Iterator[ScrapeTarget]:
    """Yield the frontends and workers that run now, with the labels of the cluster's Prometheus."""
    deployments = {each.plan.release: each for each in serving.deployments}
    for process in serving.served_processes():
        deployment = deployments[process.release]
        planned = {each.name: each.planned for each in deployment.workers}.get(process.process)
        labels = TargetLabels(
            platform=blueprint.metadata.name,
            model=deployment.model.name,
            release=process.release,
            role=planned.role if planned else "frontend",
            pool=planned.pool or SYSTEM_POOL if planned else SYSTEM_POOL,
            pod=process.name.replace(" ", "-"),
            node=platform.node(),
        )
        yield ScrapeTarget(f"{process.url}/metrics", labels.as_mapping())


def elastic_platform_parts(roles: list[tuple[ElasticRole, ScaledObject]]) -> tuple[PlatformPart, ...]:
    """Return the rows of the table of parts for an elastic run."""
    waits = any(role.workers.seconds_before_sigterm for role, _ in roles)
    starts = ", ".join(f"{role.name} {role.start_seconds:.1f} s" for role, _ in roles)
    return (
        PlatformPart(
            "Prometheus", "real", "Prometheus 3, which scrapes every frontend and worker each second"
        ),
        PlatformPart(
            "KEDA and HorizontalPodAutoscaler",
            "stand-in",
            "their decisions as a function of the rendered ScaledObjects, over the real queries; windows and "
            f"periods are {TIME_FACTOR:g} times shorter, and the clock begins on a Sunday, 12:00 UTC",
        ),
        PlatformPart(
            "What starts and ends workers in the cluster",
            "stand-in",
            "starts a worker process after the plan's time for launch, image and weights, "
            f"{TIME_FACTOR:g} times shorter ({starts}), and ends one with SIGTERM"
            + ("" if not waits else ", after a time without new requests"),
        ),
    )


def _start_seconds(blueprint: Blueprint, deployment: LocalDeployment, role: str) -> float:
    """Return the shortened time until the engine starts, on the slowest instance type of the pool.

    The engine's part is not in it: the process that stands for the engine takes its own time to start.
    """
    for model_index, model in enumerate(blueprint.spec.models):
        for deployment_index, _ in enumerate(model.deployments):
            for resolved, process in zip(
                resolve(blueprint, model_index, deployment_index), deployment.plan.workers, strict=False
            ):
                if resolved.release == deployment.plan.release and process.role == role:
                    kinds = resolved.types
                    starts = (worker_start(resolved, process.image, each, together=1) for each in kinds)
                    return (
                        max(start.seconds - (start.part("engine").seconds or 0.0) for start in starts)
                        / TIME_FACTOR
                    )
    raise ValueError(f"{deployment.plan.release}: no workers of the role {role}")
