"""Checks that engines, stacks, accelerators and operating systems support each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import inference_catalog as catalog
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.kv_cache import kv_transfer
from inference_blueprints.serving.nodes.node_systems import paired_workers, pool_system, unbootable_families
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.derived import each_placement, each_workers, karpenter_reboots
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import Rule
from inference_blueprints.spec.sections.pools.rules import accelerator_name
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import listing, quote
from inference_catalog.catalogue import shipped
from inference_catalog.hardware import processors
from inference_catalog.releases import version_order
from inference_contracts.errors import Finding

#: The release of aws/karpenter-provider-aws that brought the feature gate RebootForRepair.
_KARPENTER_REBOOTS = "1.15.0"

# Warnings about ways of serving that upstream projects do not call proven.


def _sglang_over_efa(resolved: ResolvedWorkers) -> bool:
    return resolved.model.engine.chosen == "sglang" and kv_transfer(resolved) == "libfabric"


def _wide_experts(resolved: ResolvedWorkers) -> bool:
    return resolved.workers.expert_parallel and resolved.nodes > 1


#: Whether workers are served in this way, by the catalogue's name of the way.
_USED: Mapping[str, Callable[[ResolvedWorkers], bool]] = MappingProxyType(
    {"sglangOverEfa": _sglang_over_efa, "wideExpertParallelism": _wide_experts}
)


def experimental_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Warn about each experimental way that a deployment uses.

    roles: The deployment's workers.
    Yields: A warning with the reason and its source.
    """
    # The path of a role is that of its deployment, followed by the topology.
    path = roles[0].path[:5]
    for name, way in catalog.experimental_ways().items():
        if any(map(_USED[name], roles)):
            message = f"{way.what} is experimental: {way.reason} ({way.source}); {way.remedy}"
            yield Finding(path, message, "warning")


def stack_runs_the_engine(spec: Spec) -> Iterator[Finding]:
    """Check that the stack of a model runs its engine."""
    for index, model in usable(spec.models):
        stack, engine = model.stack.chosen, model.engine.chosen
        if engine not in STACKS[stack].frameworks:
            allowed = [name for name, each in STACKS.items() if engine in each.frameworks]
            message = (
                f"got {quote(stack)} with the engine {quote(engine)}, which runs on {listing(allowed)}; set "
                f"'stack: {{{allowed[0]}: {{}}}}', or change the engine: {quote(stack)} runs "
                f"{listing(tuple(STACKS[stack].frameworks))}"
            )
            yield Finding(("spec", "models", index, "stack"), message)


def pool_suits_the_engine(spec: Spec) -> Iterator[Finding]:
    """Check that the engine runs on the accelerators of the pool."""
    for placed, pool in each_placement(spec):
        engine = placed.deployment.model.engine.chosen
        needed = ENGINES[engine].manufacturer
        for instance_type in pool.types:
            accelerator = instance_type.accelerator
            if accelerator is None or accelerator.manufacturer != needed:
                message = (
                    f"got {quote(pool.name)} with {instance_type.name} ({accelerator_name(instance_type)}), "
                    f"the engine {quote(engine)} needs {_needed(needed)}; name another pool"
                )
                yield Finding((*placed.path, "pool"), message)
                break


def _needed(manufacturer: str) -> str:
    """Return what an engine runs on, as part of a message."""
    if manufacturer == "cpu":
        return f"instance types without accelerators and with the processor {listing(processors())}"
    return f"accelerators of {manufacturer}"


def engine_fetches_from_allowed_hosts(spec: Spec) -> Iterator[Finding]:
    """Check that engine and stack fetch images from the allowed hosts only."""
    for index, model in usable(spec.models):
        stack, engine = model.stack.chosen, model.engine.chosen
        if model.media and engine in STACKS[stack].fetching_from_any_host:
            message = (
                f"got images with the engine {quote(engine)} on {quote(stack)}, whose workers fetch images "
                "from any public host that a request names; set 'engine: {sglang: {}}', or "
                "'stack: {llmD: {}}' with the engine vllm"
            )
            yield Finding(("spec", "models", index, "media"), message)


def engine_reports_the_load(spec: Spec) -> Iterator[Finding]:
    """Check that workers report the load that they are scaled by, if no router measures it."""
    for placed in each_workers(spec):
        model, scaled_by = placed.deployment.model, placed.workers.scaled_by
        metric = scaled_by.load.metric if scaled_by and scaled_by.load else None
        engine = ENGINES[model.engine.chosen]
        latency = engine.own_server.latency if engine.own_server else None
        wanted = {"kvCacheUse": engine.cache_use, "timeToFirstToken": latency}
        if model.makes_images:
            continue  # the rules on images report each load of tokens
        if model.stack.direct and metric in wanted and wanted[metric] is None:
            message = (
                f"got {quote(metric)}, but the server of {quote(model.engine.chosen)} does not report it; "
                "set 'tokensInFlight' or 'queueLength', or remove it"
            )
            yield Finding((*placed.path, "scaledBy", "load", "metric"), message)


#: Every check of this file.
SUPPORT_CHECKS: tuple[Rule, ...] = (
    stack_runs_the_engine,
    pool_suits_the_engine,
    engine_fetches_from_allowed_hosts,
    engine_reports_the_load,
)


def reboot_findings(blueprint: spec.Blueprint) -> Iterator[Finding]:
    """Check that the release of Karpenter knows reboots, if it repairs nodes and they are asked for.

    blueprint: A blueprint with valid types. Its references may be invalid.
    """
    version = blueprint.releases.charts["karpenter"].version
    if karpenter_reboots(blueprint.spec) and version_order(version) < version_order(_KARPENTER_REBOOTS):
        message = (
            f"Karpenter repairs the nodes, and its release {version}, which the lock names, reboots none; "
            f"it does so from {_KARPENTER_REBOOTS}; run 'blueprints upgrade', or remove this key"
        )
        yield Finding(("spec", "gpuHealth", "rebootsPerNodePerDay"), message)


def node_system_findings(blueprint: spec.Blueprint) -> Iterator[Finding]:
    """Check the pools.

    blueprint: A blueprint with valid types. Its references may be invalid.
    Yields: An error for each pool whose needs no operating system meets.
    """
    workers: dict[str, list[str]] = {}
    for each in paired_workers(blueprint):
        workers.setdefault(each.pool.name, []).append(f"{each.model.name}/{each.label}")
    for index, pool in usable(blueprint.spec.pools):
        if pool_system(pool, paired=pool.name in workers):
            continue
        reason, remedy = _reason(pool, workers.get(pool.name, []))
        message = f"got 'ebsSnapshot', and {reason}, and AL2023 cannot start from a snapshot; {remedy}"
        yield Finding(("spec", "pools", index, "imageAcceleration"), message)


def _reason(pool: spec.Pool, paired: Sequence[str]) -> tuple[str, str]:
    """Return why a pool needs AL2023, and what to change."""
    families = unbootable_families(pool, shipped().bottlerocket)
    if families:
        report = shipped().bottlerocket.unbootable_families[families[0]]
        return (
            f"instance types of {listing(families)} do not boot Bottlerocket's image ({report}); they need "
            "AL2023",
            "set 'sociParallelPull: {}', or use another family",
        )
    return (
        f"the workers {listing(paired)} move KV cache over EFA on a part of a node; they need AL2023, which "
        "gives a pod the EFA interfaces beside its GPUs",
        "set 'sociParallelPull: {}', or give each worker all GPUs of a node",
    )
