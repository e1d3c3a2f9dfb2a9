"""Checks that the blueprint's workers would start and serve, before anything is deployed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import inference_catalog as catalog
from inference_blueprints.serving.checks.argument_checks import (
    argument_findings,
    environment_findings,
    parser_findings,
)
from inference_blueprints.serving.checks.capability_checks import capability_findings
from inference_blueprints.serving.checks.chat_checks import chat_findings
from inference_blueprints.serving.checks.diffusion_checks import diffusion_findings
from inference_blueprints.serving.checks.draft_checks import draft_findings, draft_worker_findings
from inference_blueprints.serving.checks.engine_checks import (
    engine_findings,
    frontend_findings,
    image_findings,
    memory_argument_findings,
    option_findings,
)
from inference_blueprints.serving.checks.memory_checks import host_cache_findings, memory_findings
from inference_blueprints.serving.checks.neuron_checks import cache_findings, neuron_findings
from inference_blueprints.serving.checks.objective_checks import (
    coverage_findings,
    mix_findings,
    objective_findings,
    peak_findings,
    shift_findings,
    stream_findings,
)
from inference_blueprints.serving.checks.parallelism_checks import (
    disaggregation_findings,
    media_findings,
    parallelism_findings,
    shape_findings,
)
from inference_blueprints.serving.checks.release_checks import (
    class_findings,
    planned_argument_findings,
    release_network_findings,
)
from inference_blueprints.serving.checks.start_checks import start_findings
from inference_blueprints.serving.checks.streaming_checks import STREAMING_CHECKS
from inference_blueprints.serving.checks.support_checks import (
    SUPPORT_CHECKS,
    experimental_findings,
    node_system_findings,
    reboot_findings,
)
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.estimates.cache_tiers import shared_cache_findings, whole_kv_bytes_per_token
from inference_blueprints.serving.estimates.disk import disk_findings
from inference_blueprints.serving.estimates.node_copies import hub_findings
from inference_blueprints.serving.resolved import (
    ResolvedWorkers,
    UnresolvedError,
    engine_release,
    known_releases,
    resolve,
)
from inference_blueprints.serving.traffic import further_routes, model_traffic
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.invalid_values import decidable, usable
from inference_blueprints.spec.rule_table import findings_of
from inference_contracts.errors import Finding


def address_findings(blueprint: spec.Blueprint) -> Iterator[Finding]:
    """Warn if the models' load balancer needs more rules than its default quota: one for each address."""
    models = [model for _, model in usable(blueprint.spec.models)]
    further = sum(len(further_routes(blueprint.spec, model)) for model in models)
    quota = catalog.network_quotas()["elasticloadbalancing.rules"]
    if len(models) + further > quota.value:
        message = (
            f"got {len(models)} models, and {further} further addresses of queues and streaming jobs with "
            "'deployments'; each is a rule of the models' load balancer, whose default quota is "
            f"{quota.value:,.0f}; request an increase (Service Quotas, Elastic Load Balancing: "
            f"{quota.quota}), or create a second platform for some of the models"
        )
        yield Finding(("spec", "models"), message, "warning")


#: Checks that look at the whole blueprint, as its rules do.
SPEC_CHECKS = (*SUPPORT_CHECKS, *STREAMING_CHECKS)


def serving_findings(blueprint: spec.Blueprint) -> Iterator[Finding]:
    """Check everything that the serving plan depends on.

    References to an unknown pool, instance type or model are skipped: the blueprint's own rules report them.

    blueprint: A blueprint with valid types. Its references may be invalid.
    Yields: Errors and warnings, in the order of the blueprint.
    """
    yield from findings_of(SPEC_CHECKS, blueprint)
    yield from decidable(node_system_findings, blueprint)
    yield from decidable(reboot_findings, blueprint)
    yield from decidable(address_findings, blueprint)
    for index, _ in usable(blueprint.spec.models):
        yield from decidable(partial(_model_findings, index=index), blueprint)


def _model_findings(blueprint: spec.Blueprint, index: int) -> Iterator[Finding]:
    """Check one model and its deployments."""
    model = blueprint.spec.models[index]
    path = ("spec", "models", index)
    yield from engine_findings(model, path)
    yield from memory_argument_findings(model, path)
    yield from option_findings(model, path)
    yield from draft_findings(model, path)
    wrong_images = [*image_findings(model, known_releases(blueprint, model), path)]
    yield from wrong_images
    if _wrong(wrong_images):
        return
    release = engine_release(blueprint, model)
    yield from environment_findings(model, release, path)
    yield from parser_findings(model, release, path)
    yield from chat_findings(model, path)
    arguments_are_right = True
    for finding in argument_findings(blueprint.spec, model, release, path):
        arguments_are_right = arguments_are_right and finding.severity == "warning"
        yield finding
    for deployment_index, deployment in usable(model.deployments):
        yield from frontend_findings(blueprint.spec, model, deployment, path)
        try:
            roles = resolve(blueprint, index, deployment_index)
        except UnresolvedError:
            continue
        found = [
            finding
            for resolved in roles
            for finding in _workers_findings(resolved, arguments_are_right=arguments_are_right)
        ]
        yield from found
        if arguments_are_right and not _wrong(found):
            for resolved in roles:
                yield from planned_argument_findings(resolved)
        means = model_traffic(blueprint.spec, model).means
        has_size = means.images if model.makes_images else means.input_tokens
        if arguments_are_right and has_size and not _wrong(found):
            yield from experimental_findings(roles)
            pair = [*disaggregation_findings(roles)]
            yield from pair
            if not _wrong(pair):
                yield from coverage_findings(roles)
            yield from peak_findings(roles)
            yield from objective_findings(roles)
            yield from shift_findings(roles)
            yield from mix_findings(roles)
            yield from stream_findings(roles)


def _workers_findings(resolved: ResolvedWorkers, *, arguments_are_right: bool) -> list[Finding]:
    """Check the workers of one role. A check is skipped if an earlier one that it depends on has failed."""
    if resolved.shape.pipeline or resolved.model.makes_images:
        # The rules report a model of the wrong kind; heads and KV cache are those of language models.
        wrong = [*diffusion_findings(resolved), *capability_findings(resolved)]
        return wrong if _wrong(wrong) else [*wrong, *disk_findings(resolved)]
    if not resolved.traffic.means.input_tokens:
        return []  # the rules report it: without tokens, nothing has a size
    found = list(shape_findings(resolved)) or list(parallelism_findings(resolved))
    found += neuron_findings(resolved)
    found += capability_findings(resolved)
    found += class_findings(resolved)
    found += release_network_findings(resolved)
    if _wrong(found):
        return found
    if arguments_are_right:
        memory, sizing = worker_memory(resolved), worker_sizing(resolved)
        of_memory = memory_findings(resolved)
        found += of_memory
        found += [] if _wrong(of_memory) else cache_findings(resolved)
        found += start_findings(resolved)
        found += draft_worker_findings(resolved, sizing)
        found += host_cache_findings(resolved, memory, sizing)
        found += shared_cache_findings(resolved, whole_kv_bytes_per_token(resolved, memory))
        # Without memory for one request, there is no longest request to compare with.
        found += [] if _wrong(of_memory) else media_findings(resolved, sizing)
    found += disk_findings(resolved)
    found += hub_findings(resolved)
    # Warnings compare sizes, and with an error the sizes will change.
    return [*filter(_is_error, found)] if _wrong(found) else found


def _wrong(found: Iterable[Finding]) -> bool:
    """Whether the findings contain an error."""
    return any(map(_is_error, found))


def _is_error(finding: Finding) -> bool:
    return finding.severity == "error"
