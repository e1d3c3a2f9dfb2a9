"""The table of rules.

A new rule is a function in the file of its subject and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.spec.holes import decidable
from inference_blueprints.spec.rules import (
    batch,
    batch_load,
    batch_policy,
    capacity,
    cluster,
    efa_interfaces,
    environment,
    image_acceleration,
    media,
    names,
    network,
    nodes,
    observability,
    pools,
    purchases,
    queueing,
    routes,
    schedules,
    signals,
    stacks,
    subnet_addresses,
    tasks,
    topologies,
    weights,
    workload,
)
from inference_blueprints.spec.types import Blueprint, Spec

#: Yields errors and warnings about a blueprint; `decidable` handles values that do not fit the types.
Rule = Callable[[Spec], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    environment.region_is_known,
    environment.zones_are_of_the_region,
    environment.zones_differ,
    environment.tags_are_allowed,
    network.new_or_existing,
    network.range_is_valid,
    network.range_is_private,
    network.existing_range_is_valid,
    network.sources_are_valid,
    network.subnets_match_zones,
    network.subnets_differ,
    network.certificate_has_a_domain,
    network.certificate_is_in_the_region,
    network.connections_are_encrypted,
    subnet_addresses.pools_fit_the_network,
    cluster.version_is_supported,
    names.pools_differ,
    names.models_differ,
    names.deployments_differ,
    topologies.one_topology,
    stacks.stack_routes_like_that,
    stacks.settings_are_of_dynamo_s_router,
    stacks.frontends_are_dynamo_s,
    names.releases_differ,
    names.releases_are_short,
    routes.deployments_fit_the_load_balancer,
    pools.instance_types_are_known,
    pools.instance_types_are_offered,
    pools.instance_types_differ,
    pools.instance_types_are_alike,
    nodes.minimum_is_within_the_maximum,
    nodes.pool_zone_is_the_platforms,
    nodes.labels_are_the_users,
    nodes.taints_are_the_users,
    purchases.capacity_block_is_sold,
    purchases.block_is_selected_once,
    purchases.block_dates_are_of_one_block,
    purchases.block_dates_exist,
    purchases.block_starts_before_it_ends,
    purchases.reservation_is_of_one_type,
    purchases.reservation_tags_can_exist,
    efa_interfaces.every_type_has_efa,
    efa_interfaces.layouts_are_alike,
    efa_interfaces.efa_stays_in_one_zone,
    efa_interfaces.roles_are_in_one_zone,
    efa_interfaces.replica_has_an_interface,
    image_acceleration.snapshot_is_baked,
    image_acceleration.snapshot_is_no_slower,
    pools.pool_exists,
    pools.pool_is_used,
    queueing.no_queue_takes_every_job,
    queueing.taints_can_be_tolerated,
    queueing.borrowing_fits_a_template,
    queueing.queue_has_something_to_give,
    batch.teams_differ,
    batch.principals_are_of_one_team,
    batch.batch_has_teams,
    batch.queues_differ,
    batch.queue_has_a_model,
    batch_load.load_is_within_the_peak,
    batch.schedules_differ,
    batch.schedule_has_a_queue,
    batch.schedule_has_a_team,
    batch.inputs_are_the_teams,
    batch.priorities_are_the_teams,
    batch.rows_have_a_template,
    batch_policy.queue_is_not_a_prefix_of_the_platform,
    batch_policy.teams_fit_a_policy,
    batch_policy.objects_outlive_jobs,
    schedules.cron_is_accepted,
    schedules.placeholders_are_known,
    schedules.addresses_stay_in_the_bucket,
    schedules.template_is_valid,
    batch.workers_run_in_one_place,
    batch.least_workers_are_within_the_most,
    batch.workers_fit_the_nodes,
    subnet_addresses.tasks_fit_the_network,
    signals.something_fills_the_store,
    signals.signals_differ,
    signals.signal_has_a_team,
    signals.schedules_write_signals_of_their_team,
    observability.logs_are_kept_for_a_period_on_offer,
    observability.topic_is_in_the_region,
    weights.one_source,
    weights.hub_keys_go_with_the_hub,
    weights.shape_is_known,
    weights.type_is_of_a_quantised_model,
    weights.gated_model_has_a_token,
    weights.secret_is_in_the_region,
    weights.mirror_is_of_a_commit,
    weights.revision_is_pinned,
    media.model_reads_images,
    media.images_go_to_one_worker,
    media.image_has_the_model_s_tokens,
    media.hosts_are_named,
    tasks.answers_have_a_length,
    tasks.embedding_model_has_no_settings_of_answers,
    tasks.embedding_model_runs_on_vllm,
    tasks.embedding_model_is_routed_without_caches,
    tasks.embedding_workers_are_whole,
    tasks.queues_have_a_model_that_writes,
    workload.requests_fit_the_context,
    capacity.replica_fits_a_node,
    capacity.replica_across_nodes_has_a_fast_network,
    capacity.replicas_fit_the_pool,
    capacity.pool_has_headroom,
    capacity.pool_keeps_no_idle_nodes,
    capacity.deployment_survives_a_node,
)


def rule_findings(blueprint: Blueprint) -> list[Finding]:
    """Return the findings of all rules on a blueprint, which may have holes."""
    return findings_of(RULES, blueprint)


def findings_of(rules: Iterable[Rule], blueprint: Blueprint) -> list[Finding]:
    """Return the findings of some rules on a blueprint, which may have holes."""
    return [finding for rule in rules for finding in decidable(_on_blueprint(rule), blueprint)]


def _on_blueprint(rule: Rule) -> Callable[[Blueprint], Iterator[Finding]]:
    return lambda blueprint: rule(blueprint.spec)
