"""The table of rules, and how they are run on as much of a blueprint as fits the types.

A new rule is a function in the file of its subject and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from inference_blueprints.errors import Finding
from inference_blueprints.spec.partial import Undecidable
from inference_blueprints.spec.rules import (
    addresses,
    batch,
    batch_load,
    capacity,
    cluster,
    efa,
    environment,
    images,
    media,
    names,
    network,
    nodes,
    pools,
    purchases,
    queueing,
    routes,
    signals,
    stacks,
    topologies,
    weights,
    workload,
)
from inference_blueprints.spec.sections import Sections
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.spec.wording import Path


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule and the parts of the blueprint that it is given.

    Parameters
    ----------
    check
        Yields findings; takes the parts as positional arguments.
    reads
        Names of the parts. Of ``pools``, ``models`` and ``teams`` it gets the items that fit, by their index.
    """

    check: Callable[..., Iterable[Finding]]
    reads: tuple[str, ...]

    def run(self, sections: Sections) -> Iterator[Finding]:
        """Yield what the rule finds, as far as there is enough of the blueprint for a verdict."""
        parts = [getattr(sections, name) for name in self.reads]
        if any(part is None for part in parts) or (sections.about and sections.about not in self.reads):
            return
        with suppress(Undecidable):
            yield from self.check(*parts)


RULES: tuple[Rule, ...] = (
    Rule(environment.region_is_known, ("environment",)),
    Rule(environment.zones_are_of_the_region, ("environment",)),
    Rule(environment.zones_differ, ("environment",)),
    Rule(environment.tags_are_allowed, ("environment",)),
    Rule(network.new_or_existing, ("network",)),
    Rule(network.range_is_valid, ("network",)),
    Rule(network.existing_range_is_valid, ("network",)),
    Rule(network.sources_are_valid, ("network",)),
    Rule(network.subnets_match_zones, ("network", "environment")),
    Rule(network.subnets_differ, ("network",)),
    Rule(network.certificate_has_a_domain, ("network",)),
    Rule(network.certificate_is_in_the_region, ("network", "environment")),
    Rule(network.connections_are_encrypted, ("network",)),
    Rule(addresses.pools_fit_the_network, ("network", "environment", "pools")),
    Rule(cluster.version_is_supported, ("cluster",)),
    Rule(names.pools_differ, ("pools",)),
    Rule(names.models_differ, ("models",)),
    Rule(names.deployments_differ, ("models",)),
    Rule(topologies.one_topology, ("models",)),
    Rule(stacks.stack_runs_the_engine, ("models",)),
    Rule(stacks.stack_routes_like_that, ("models",)),
    Rule(names.releases_differ, ("models",)),
    Rule(names.releases_are_short, ("models",)),
    Rule(routes.deployments_fit_the_load_balancer, ("models",)),
    Rule(pools.instance_types_are_known, ("pools",)),
    Rule(pools.instance_types_differ, ("pools",)),
    Rule(pools.instance_types_are_alike, ("pools",)),
    Rule(nodes.minimum_is_within_the_maximum, ("pools",)),
    Rule(nodes.pool_zone_is_the_platforms, ("pools", "environment")),
    Rule(nodes.labels_are_the_users, ("pools",)),
    Rule(nodes.taints_are_the_users, ("pools",)),
    Rule(purchases.capacity_block_is_sold, ("pools",)),
    Rule(purchases.reservation_is_of_one_type, ("pools",)),
    Rule(purchases.reservation_tags_can_exist, ("pools",)),
    Rule(efa.every_type_has_efa, ("pools",)),
    Rule(efa.layouts_are_alike, ("pools",)),
    Rule(efa.efa_stays_in_one_zone, ("pools",)),
    Rule(efa.replica_has_an_interface, ("models", "pools")),
    Rule(images.snapshot_is_baked, ("pools",)),
    Rule(images.snapshot_is_no_slower, ("pools",)),
    Rule(pools.pool_exists, ("models", "pool_names")),
    Rule(pools.pool_suits_the_engine, ("models", "pools")),
    Rule(pools.pool_is_used, ("models", "pools")),
    Rule(queueing.no_queue_takes_every_job, ("queueing", "pools")),
    Rule(queueing.taints_can_be_tolerated, ("queueing", "pools")),
    Rule(queueing.borrowing_fits_a_template, ("queueing", "pools")),
    Rule(queueing.queue_has_something_to_give, ("queueing", "models", "pools")),
    Rule(batch.teams_differ, ("teams",)),
    Rule(batch.principals_are_of_one_team, ("teams",)),
    Rule(batch.batch_has_teams, ("batch", "team_count")),
    Rule(batch.queues_differ, ("batch",)),
    Rule(batch.queue_has_a_model, ("batch", "model_names")),
    Rule(batch_load.load_is_within_the_peak, ("batch", "models")),
    Rule(batch.schedules_differ, ("batch",)),
    Rule(batch.schedule_has_queue_and_team, ("batch", "teams")),
    Rule(batch.inputs_are_the_teams, ("batch", "teams")),
    Rule(batch.rows_have_a_template, ("batch",)),
    Rule(batch.manifests_fit_a_policy, ("batch", "teams")),
    Rule(batch.workers_run_in_one_place, ("batch",)),
    Rule(batch.least_workers_are_within_the_most, ("batch",)),
    Rule(batch.workers_fit_the_nodes, ("batch",)),
    Rule(addresses.tasks_fit_the_network, ("batch", "network", "environment", "pools")),
    Rule(signals.something_fills_the_store, ("signal_store", "queue_count")),
    Rule(signals.signals_differ, ("signal_store",)),
    Rule(signals.signal_has_a_team, ("signal_store", "teams")),
    Rule(signals.schedules_write_signals_of_their_team, ("batch", "signal_owners")),
    Rule(weights.one_source, ("models",)),
    Rule(weights.hub_keys_go_with_the_hub, ("models",)),
    Rule(weights.shape_is_known, ("models",)),
    Rule(weights.gated_model_has_a_token, ("models",)),
    Rule(weights.secret_is_in_the_region, ("models", "environment")),
    Rule(weights.mirror_is_of_a_commit, ("models",)),
    Rule(weights.revision_is_pinned, ("models",)),
    Rule(media.model_reads_images, ("models",)),
    Rule(media.engine_fetches_from_allowed_hosts, ("models",)),
    Rule(media.images_go_to_one_worker, ("models",)),
    Rule(media.image_has_the_model_s_tokens, ("models",)),
    Rule(media.hosts_are_named, ("models",)),
    Rule(workload.requests_fit_the_context, ("models",)),
    Rule(capacity.replica_fits_a_node, ("models", "pools")),
    Rule(capacity.replica_across_nodes_has_a_fast_network, ("models", "pools")),
    Rule(capacity.replicas_fit_the_pool, ("models", "pools")),
    Rule(capacity.pool_has_headroom, ("models", "pools")),
    Rule(capacity.deployment_survives_a_node, ("models", "pools")),
)


def findings(sections: Sections, partial: Iterable[Sections] = ()) -> list[Finding]:
    """Return what the rules find.

    Parameters
    ----------
    sections
        The parts that fit the types.
    partial
        More of the parts, with values that raise `Undecidable`; a rule speaks once of a place.
    """
    found: list[Finding] = []
    seen: set[tuple[Rule, Path]] = set()
    for view in (*partial, sections):
        fresh = [
            (rule, finding)
            for rule in RULES
            for finding in rule.run(view)
            if (rule, finding.path) not in seen
        ]
        seen.update((rule, finding.path) for rule, finding in fresh)
        found += [finding for _, finding in fresh]
    return found


def rules(blueprint: Blueprint) -> list[Finding]:
    """Return what the rules find in a blueprint.

    Parameters
    ----------
    blueprint
        A blueprint in which everything fits the types.
    """
    return findings(Sections.of(blueprint))
