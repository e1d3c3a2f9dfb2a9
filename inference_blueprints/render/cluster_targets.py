"""The targets that a blueprint can choose in its section ``cluster``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from inference_blueprints.render.target import Target
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding


def _ecs() -> type[Target[Any]]:
    from inference_blueprints.render.ecs.ecs_target import EcsTarget

    return EcsTarget


def _eks() -> type[Target[Any]]:
    from inference_blueprints.render.eks.eks_target import EksTarget

    return EksTarget


#: What imports each target, by its key in the section ``cluster``. A blueprint needs its own target only.
CLUSTER_TARGETS: Mapping[str, Callable[[], type[Target[Any]]]] = MappingProxyType({"eks": _eks, "ecs": _ecs})


def target_findings(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield a finding for each part of a blueprint that the chosen target cannot run."""
    yield from CLUSTER_TARGETS[blueprint.spec.cluster.chosen]().findings(blueprint)


def planned_target_findings(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield a finding for each part of the plan of a blueprint without errors that the target cannot run."""
    yield from CLUSTER_TARGETS[blueprint.spec.cluster.chosen]().planned_findings(blueprint)
