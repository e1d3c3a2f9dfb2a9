"""Computes the figures of a plan from a blueprint and its serving plan."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import inference_catalog as catalog
from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.report.figures import (
    PlanSummary,
    PoolSummary,
    PriceNote,
    ProcessSummary,
    Totals,
)
from inference_blueprints.report.plan.compilation_summaries import summarise_compilations
from inference_blueprints.report.plan.edge_summaries import summarise_edges
from inference_blueprints.report.plan.frontend_summaries import summarise_frontends
from inference_blueprints.report.plan.image_summaries import summarise_images
from inference_blueprints.report.plan.memory_summary import summarise_memory
from inference_blueprints.report.plan.objective_summary import objective_checks
from inference_blueprints.report.plan.repair_summaries import summarise_repairs
from inference_blueprints.report.plan.scaling_summaries import summarise_scaling
from inference_blueprints.report.plan.shift_summaries import summarise_shift
from inference_blueprints.report.plan.streaming_summaries import summarise_kafka, summarise_streaming
from inference_blueprints.report.pricing.batch_worker_price import batch_worker_price
from inference_blueprints.report.pricing.platform_price import platform_price
from inference_blueprints.report.pricing.rates import CustomRates, Prices, prices_for
from inference_blueprints.report.pricing.signal_store_price import signal_store_price
from inference_blueprints.report.pricing.streaming_price import streaming_items
from inference_blueprints.report.pricing.telemetry_price import MonitoringSize
from inference_blueprints.report.pricing.token_price import token_price
from inference_blueprints.report.sizing.batch_day import batch_days, summarise_days
from inference_blueprints.report.sizing.batch_quotas import service_quota_uses
from inference_blueprints.report.sizing.cold_start import cold_start
from inference_blueprints.report.sizing.ec2_quotas import quota_needs
from inference_blueprints.report.sizing.model_capacity import model_capacities
from inference_blueprints.report.sizing.node_addresses import address_use
from inference_blueprints.report.sizing.node_packing import PackedNode, cheapest_placement, workers_of_pool
from inference_blueprints.report.sizing.pod_fit import pod_fit
from inference_blueprints.serving.nodes.ecs_capacity import EcsHosts, pool_capacities
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.types import Process, ServingPlan
from inference_blueprints.spec.types import Blueprint, Pool, Spec
from inference_blueprints.spec.used_features import support_of
from inference_catalog import InstanceType
from inference_catalog.catalogue import shipped
from inference_catalog.ecs_hosts import ecs_host_image
from inference_catalog.operating_system import OperatingSystem
from inference_catalog.releases import Releases

#: Prices in the catalogue have five decimals; sums are rounded back to them.
_PRICE_DECIMALS = 5


def summarise(blueprint: Blueprint, plan: ServingPlan, rates: CustomRates | None = None) -> PlanSummary:
    """Summarise nodes, memory, prices and limits of a blueprint.

    Parameters
    ----------
    plan
        The serving plan computed from it.
    rates
        The user's own rates; without them, only on-demand prices are known.

    Returns
    -------
    PlanSummary
        Figures without a source are None, never guessed.
    """
    spec = blueprint.spec
    prices = prices_for(spec.environment.region, rates)
    placed = {
        pool.name: cheapest_placement(workers_of_pool(plan, pool.name), prices.types_of(pool))
        for pool in spec.pools
    }
    hosts = {each.pool: each.kind for each in pool_capacities(blueprint, plan)} if spec.cluster.ecs else {}
    pools = tuple(
        summarise_pool(
            pool, plan, blueprint.releases, prices, placed[pool.name], ecs_hosts=hosts.get(pool.name)
        )
        for pool in spec.pools
    )
    processes = summarise_processes(plan, without_pool="Fargate" if spec.cluster.ecs else None)
    memory = summarise_memory(blueprint)
    roles = list(_roles(blueprint, plan))
    days = batch_days(spec.batch, spec.models, publishes=spec.signal_store is not None) if spec.batch else ()
    deployments = {
        f"{group[0].model.name}/{group[0].deployment.name}": group
        for group in _by_deployment(resolved for resolved, _ in roles)
    }
    token_prices = {name: token_price(group, pools, processes) for name, group in deployments.items()}
    embedding = tuple(name for name, group in deployments.items() if group[0].model.task == "embed")
    writing = tuple(name for name, group in deployments.items() if group[0].model.task == "generate")
    capacities = model_capacities(resolved for resolved, _ in roles)
    streaming, kafka = tuple(summarise_streaming(spec, capacities)), summarise_kafka(spec)
    signal_store, batch_workers = signal_store_price(spec.signal_store), batch_worker_price(spec.batch)
    return PlanSummary(
        name=blueprint.metadata.name,
        region=spec.environment.region,
        support=support_of(spec),
        pools=pools,
        processes=processes,
        frontends=tuple(summarise_frontends(deployments.values())),
        scaling=tuple(summarise_scaling(roles, pools)),
        memory=memory,
        totals=_total(pools),
        prices=_prices(spec, prices),
        platform_cost=platform_price(
            spec,
            pools,
            [resolved for resolved, _ in roles],
            prices,
            processes=processes,
            monitoring=_monitoring(blueprint, plan),
            signal_store=signal_store,
            batch_workers=batch_workers,
            streaming=tuple(
                streaming_items(kafka, streaming, catalog.service_prices(spec.environment.region))
            ),
        ),
        token_prices=tuple(each for each in token_prices.values() if each),
        without_profile=tuple(
            name for name, each in token_prices.items() if each is None and name in writing
        ),
        embedding=embedding,
        objectives=tuple(
            check
            for name, group in deployments.items()
            for check in objective_checks(group, token_prices[name])
        ),
        quotas=quota_needs(spec.pools, pools, system=spec.cluster.eks is not None),
        batch_days=summarise_days(days, capacities),
        service_quotas=service_quota_uses(days, spec.environment.region),
        signal_store=signal_store,
        batch_workers=batch_workers,
        repairs=tuple(summarise_repairs(spec)),
        compilations=tuple(summarise_compilations(roles)),
        images=tuple(summarise_images((resolved for resolved, _ in roles), pools, processes)),
        shift=tuple(summarise_shift(blueprint, plan)),
        edges=tuple(summarise_edges(spec, (resolved for resolved, _ in roles), prices)),
        streaming=streaming,
        kafka=kafka,
        cold_starts=tuple(
            cold_start(resolved, worker, placed[resolved.pool.name]) for resolved, worker in roles
        ),
        addresses=address_use(spec),
        fits=tuple(
            pod_fit(resolved.pool.name, resolved.model.name, resolved.label, worker, kind)
            for resolved, worker in roles
            for kind in resolved.instance_types
        ),
    )


def _monitoring(blueprint: Blueprint, plan: ServingPlan) -> MonitoringSize:
    """Return what monitors the platform, if it is observed."""
    name, spec = blueprint.metadata.name, blueprint.spec
    recorded = platform_rules(
        name,
        plan,
        models=spec.models,
        pools=spec.pools,
        gpu_health=spec.gpu_health,
        region=spec.environment.region,
    )
    alarms = platform_alarms(name, plan, on_ecs=spec.cluster.ecs is not None)
    return MonitoringSize(
        recorded_series=sum(rule.series for rule in recorded),
        promql_alarms=len(alarms),
        samples_per_minute=sum(alarm.samples for alarm in alarms),
        # The stack of operations has one of its own.
        dashboards=len(dashboard_rows()) + bool(spec.gpu_health or spec.capacity_shift),
    )


def _roles(blueprint: Blueprint, plan: ServingPlan) -> Iterator[tuple[ResolvedWorkers, Process]]:
    """Yield the workers of each role of each deployment with their process."""
    for model_index, model in enumerate(plan.models):
        for deployment_index, deployment in enumerate(model.deployments):
            roles = resolve(blueprint, model_index, deployment_index)
            yield from zip(roles, deployment.workers, strict=True)


def _by_deployment(workers: Iterable[ResolvedWorkers]) -> Iterator[tuple[ResolvedWorkers, ...]]:
    """Put the roles of a deployment together."""
    for _, group in groupby(workers, key=lambda each: each.release):
        yield tuple(group)


def as_dict(summary: PlanSummary) -> dict[str, Any]:
    """Return a summary as JSON values under camelCase keys.

    Returns
    -------
    dict
        The same figures; ``prices`` carries its note too, each cold start what dominates it, and each quota
        of a service its share and whether it is exceeded. ``support`` has levels in place of proofs.
    """
    document: dict[str, Any] = camel_case(dataclasses.asdict(summary))
    document["prices"]["note"] = summary.prices.note
    document["support"] = summary.support.as_dict()
    for each, start in zip(document["coldStarts"], summary.cold_starts, strict=True):
        each["dominatedBy"] = start.dominated_by
    for each, check in zip(document["objectives"], summary.objectives, strict=True):
        each["isMissed"] = check.is_missed
    for each, day in zip(document["batchDays"], summary.batch_days, strict=True):
        each.update(jobHours=day.job_hours, deadlineCanHold=day.deadline_can_hold, keepsUp=day.keeps_up)
    for each, edge in zip(document["edges"], summary.edges, strict=True):
        each.update(balancerUnits=edge.balancer_units, zonePlacementSaves=edge.zone_placement_saves)
    for each, job in zip(document["streaming"], summary.streaming, strict=True):
        each["keepsUp"] = job.keeps_up
    for each, use in zip(document["serviceQuotas"], summary.service_quotas, strict=True):
        each.update(share=use.share, isExceeded=use.is_exceeded)
    return document


def summarise_pool(
    pool: Pool,
    plan: ServingPlan,
    releases: Releases,
    known: Prices,
    nodes: list[PackedNode],
    *,
    ecs_hosts: EcsHosts | None = None,
) -> PoolSummary:
    """Sum up one pool.

    Parameters
    ----------
    plan
        Whose workers it holds.
    releases
        Releases of the nodes' operating systems.
    known
        What is known of prices.
    nodes
        Where those workers are placed.
    ecs_hosts
        What runs its hosts on ECS. None on EKS.
    """
    instance_types = known.types_of(pool)
    workers = workers_of_pool(plan, pool.name)
    accelerator = instance_types[0].accelerator
    bounds = {kind.name: known.usd_per_hour_at_most(kind.name, pool.purchase) for kind in instance_types}
    dearest = (
        None if None in bounds.values() else max(bound for bound in bounds.values() if bound is not None)
    )
    node_count = max(len(nodes), pool.nodes.min)
    reckoned = _reckoned_type(nodes, instance_types) if node_count else None
    held = sum(worker.accelerator_count for worker in workers)
    system = shipped().operating_systems[plan.node_systems[pool.name]]
    return PoolSummary(
        name=pool.name,
        instance_types=tuple(pool.instance_types),
        purchase=pool.purchase.chosen,
        node_image=_host_image(ecs_hosts) if ecs_hosts else _node_image(pool, system, releases),
        root_volume_gib=_host_volume_gib(ecs_hosts) if ecs_hosts else system.root_volume_gib,
        is_managed_by_ecs=ecs_hosts == "managed",
        pairs_efa_with_gpus=system.pairs_efa_with_gpus and ecs_hosts is None,
        reckoned_instance_type=reckoned.name if reckoned else None,
        accelerator=accelerator.name if accelerator else None,
        nodes_used=node_count,
        nodes_max=pool.nodes.max,
        accelerators_used=held,
        accelerators_max=pool.nodes.max * max(kind.accelerator_count for kind in instance_types),
        usd_per_hour_used=_times(node_count, reckoned.usd_per_hour if reckoned else 0.0),
        usd_per_hour_max=_times(pool.nodes.max, dearest),
        usd_per_hour_used_at_most=_times(node_count, bounds[reckoned.name] if reckoned else 0.0),
        nodes_idle=node_count - len(nodes),
        accelerators_idle=node_count * reckoned.accelerator_count - held if reckoned else 0,
    )


def _node_image(pool: Pool, system: OperatingSystem, releases: Releases) -> str:
    """Return the operating system and its release."""
    held = releases.held_pools.get(pool.name)
    return f"{system.ami_family} {(held or releases).release_of(system.name)}"


def _host_image(hosts: EcsHosts) -> str:
    """Return what the hosts of a pool on ECS boot."""
    return "chosen by ECS" if hosts == "managed" else f"ECS-optimized AL2023 {ecs_host_image().version}"


def _host_volume_gib(hosts: EcsHosts) -> int:
    """Return the space of the operating system on EBS. Managed Instances are only given space for tasks."""
    return 0 if hosts == "managed" else ecs_host_image().root_volume_gib


def _reckoned_type(nodes: list[PackedNode], instance_types: list[InstanceType]) -> InstanceType:
    """Return the type that workers are placed on; kept nodes without workers are of the cheapest."""
    if nodes:
        return nodes[0].instance_type
    return min(instance_types, key=lambda kind: math.inf if kind.usd_per_hour is None else kind.usd_per_hour)


def _times(nodes: int, usd_per_hour: float | None) -> float | None:
    return None if usd_per_hour is None else round(nodes * usd_per_hour, _PRICE_DECIMALS)


def summarise_processes(plan: ServingPlan, *, without_pool: str | None = None) -> tuple[ProcessSummary, ...]:
    """Return every process of a plan in figures.

    Parameters
    ----------
    without_pool
        What runs the processes that have no pool. None for the system nodes.
    """
    return tuple(
        ProcessSummary(
            model=model.name,
            deployment=deployment.name,
            name=process.name,
            replicas_least=process.replicas,
            replicas=process.most,
            accelerators=_accelerators(process),
            nodes=process.nodes,
            pool=process.pool or without_pool,
            image=process.image,
        )
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
    )


def _accelerators(process: Process) -> int:
    accelerators = process.resources.accelerators
    return process.nodes * accelerators.count if accelerators else 0


def _total(pools: tuple[PoolSummary, ...]) -> Totals:
    return Totals(
        nodes_used=sum(pool.nodes_used for pool in pools),
        nodes_max=sum(pool.nodes_max for pool in pools),
        accelerators_used=sum(pool.accelerators_used for pool in pools),
        accelerators_max=sum(pool.accelerators_max for pool in pools),
        usd_per_hour_used=_sum_of_known(pool.usd_per_hour_used for pool in pools),
        usd_per_hour_max=_sum_of_known(pool.usd_per_hour_max for pool in pools),
        without_used=tuple(pool.name for pool in pools if pool.usd_per_hour_used is None),
        without_max=tuple(pool.name for pool in pools if pool.usd_per_hour_max is None),
        usd_per_hour_used_at_most=_sum_of_all(pool.usd_per_hour_used_at_most for pool in pools),
    )


def _sum_of_all(prices: Iterable[float | None]) -> float | None:
    """Return a sum; None if a part is unknown."""
    values = list(prices)
    return None if None in values else _sum_of_known(values)


def _sum_of_known(prices: Iterable[float | None]) -> float | None:
    known = [price for price in prices if price is not None]
    return round(sum(known), _PRICE_DECIMALS) if known else None


def _prices(spec: Spec, known: Prices) -> PriceNote:
    table, rates = known.table, known.rates
    cluster = ("EKS control plane", "system nodes") if spec.cluster.eks else ("tasks on Fargate",)
    own_network = () if spec.network.existing else ("NAT gateways and VPC endpoints",)
    return PriceNote(
        region=table.region,
        date=table.date,
        source=table.source,
        blueprint_region=spec.environment.region,
        not_included=(
            *cluster,
            *own_network,
            "load balancer",
            "disks, buckets, logs and data transfer",
        ),
        rates=f"{rates.source}, {rates.date}" if rates else "",
    )


def camel_case(value: Any) -> Any:
    """Spell the keys of nested dictionaries in camelCase; tuples become lists."""
    if isinstance(value, dict):
        return {camel_case_word(key): camel_case(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [camel_case(item) for item in value]
    return value


def camel_case_word(word: str) -> str:
    first, *others = word.split("_")
    return first + "".join(other.capitalize() for other in others)
