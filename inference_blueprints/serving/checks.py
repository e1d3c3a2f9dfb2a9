"""What can be known before paying: whether what the blueprint describes would start and serve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.serving.argument_checks import argument_findings
from inference_blueprints.serving.disaggregation_checks import disaggregation_findings
from inference_blueprints.serving.disk import disk_findings
from inference_blueprints.serving.engine_checks import engine_findings
from inference_blueprints.serving.engines.sizing import worker_memory, worker_sizing
from inference_blueprints.serving.host_cache import whole_kv_bytes_per_token
from inference_blueprints.serving.host_cache_checks import host_cache_findings
from inference_blueprints.serving.media_checks import media_findings
from inference_blueprints.serving.memory_checks import memory_findings
from inference_blueprints.serving.parallelism_checks import parallelism_findings
from inference_blueprints.serving.resolved import ResolvedWorkers, UnresolvedError, resolve
from inference_blueprints.serving.shape_checks import shape_findings
from inference_blueprints.serving.shared_cache import shared_cache_findings
from inference_blueprints.spec import types as spec


def findings(blueprint: spec.Blueprint) -> Iterator[Finding]:
    """Check everything that the serving plan depends on.

    A name that leads nowhere (a pool, an instance type, a model) is passed over: the blueprint's own rules
    report it at its place.

    Parameters
    ----------
    blueprint
        A blueprint of the right types, whose references may be wrong.

    Yields
    ------
    Finding
        Errors and warnings, in the order of the blueprint.
    """
    for model_index, model in enumerate(blueprint.spec.models):
        engine = blueprint.releases.engine(model.engine.chosen)
        yield from engine_findings(model, ("spec", "models", model_index))
        arguments_are_right = True
        for finding in argument_findings(model, engine, ("spec", "models", model_index)):
            arguments_are_right = False
            yield finding
        for deployment_index in range(len(model.deployments)):
            try:
                roles = resolve(blueprint, model_index, deployment_index)
            except UnresolvedError:
                continue
            found = [
                finding
                for resolved in roles
                for finding in _workers_findings(resolved, arguments_are_right=arguments_are_right)
            ]
            yield from found
            if arguments_are_right and not _wrong(found):
                yield from disaggregation_findings(roles)


def _workers_findings(resolved: ResolvedWorkers, *, arguments_are_right: bool) -> list[Finding]:
    """Check the workers of one role, each thing only where what it builds on is right."""
    found = list(shape_findings(resolved)) or list(parallelism_findings(resolved))
    if not _wrong(found) and arguments_are_right:
        found += memory_findings(resolved)
        if not _wrong(found):
            memory, sizing = worker_memory(resolved), worker_sizing(resolved)
            found += host_cache_findings(resolved, memory, sizing)
            found += shared_cache_findings(resolved, whole_kv_bytes_per_token(resolved, memory))
            found += media_findings(resolved, sizing)
    return found if _wrong(found) else [*found, *disk_findings(resolved)]


def _wrong(found: Iterable[Finding]) -> bool:
    """Whether there is an error among findings."""
    return any(finding.severity == "error" for finding in found)
