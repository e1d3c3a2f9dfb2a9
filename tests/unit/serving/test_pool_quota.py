from __future__ import annotations

from collections.abc import Callable

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.nodes.node_share import node_capacity, pool_quota
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]


def quota_of(blueprint: Blueprint, *, plan: ServingPlan | None = None) -> dict[str, str]:
    [pool] = blueprint.spec.pools
    return dict(pool_quota(pool, plan or build_plan(blueprint)).resources)


def test_without_models_it_is_what_the_nodes_hold(make_blueprint: Make) -> None:
    capacity = node_capacity(catalog.instance_type("g6e.12xlarge"))
    blueprint = make_blueprint(instance_types=["g6e.12xlarge"], nodes=5)
    assert quota_of(blueprint, plan=ServingPlan()) == {
        "cpu": str(5 * capacity.cpu),
        "memory": f"{5 * capacity.memory_mib}Mi",
        "nvidia.com/gpu": "20",
    }


@pytest.mark.parametrize(("nodes", "left"), [(2, "0"), (3, "1"), (5, "3")])
def test_models_come_first(make_blueprint: Make, nodes: int, left: str) -> None:
    """Two workers of one GPU each, on nodes of one."""
    assert quota_of(make_blueprint(nodes=nodes))["nvidia.com/gpu"] == left


def test_a_worker_s_memory_and_processors_are_taken_too(make_blueprint: Make) -> None:
    blueprint = make_blueprint(nodes=3)
    capacity = node_capacity(catalog.instance_type("g6e.2xlarge"))
    worker = build_plan(blueprint).models[0].deployments[0].processes[1].resources
    quota = quota_of(blueprint)
    assert quota["cpu"] == str(3 * capacity.cpu - 2 * worker.cpu)
    assert quota["memory"] == f"{3 * capacity.memory_mib - 2 * worker.memory_mib}Mi"


def test_of_several_types_the_largest_counts_as_in_the_pool_s_limits(make_blueprint: Make) -> None:
    """A quota of the smallest type's memory would leave part of the pool unused by jobs."""
    capacity = node_capacity(catalog.instance_type("g6e.48xlarge"))
    blueprint = make_blueprint(instance_types=["g6e.48xlarge", "g6e.12xlarge"], nodes=3)
    assert quota_of(blueprint, plan=ServingPlan()) == {
        "cpu": str(3 * capacity.cpu),
        "memory": f"{3 * capacity.memory_mib}Mi",
        "nvidia.com/gpu": "24",
    }


def test_a_pool_without_accelerators_has_none_to_give(make_blueprint: Make) -> None:
    blueprint = make_blueprint(instance_types=["m7i.xlarge"], nodes=3)
    assert set(quota_of(blueprint, plan=ServingPlan())) == {"cpu", "memory"}
