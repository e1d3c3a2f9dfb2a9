from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.nodes.node_share import set_neighbours, strands
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Neighbour, Process
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

_PER_NODE = 8
_SIZES = (1, 2, 4, 8)


def workers(blueprint: Blueprint) -> list[Process]:
    return [
        process
        for model in build_plan(blueprint).models
        for deployment in model.deployments
        for process in deployment.processes
        if process.pool
    ]


def beside(make_blueprint: Make, *sizes: tuple[int, int], nodes: int = 2) -> list[Process]:
    """Workers of several deployments of a model, each of so many replicas and accelerators, on one pool."""
    document = make_blueprint(instance_types=["p5en.48xlarge"], nodes=nodes).model_dump(
        by_alias=True, exclude_none=True
    )
    (model,) = document["spec"]["models"]
    (deployment,) = model["deployments"]
    model["deployments"] = [
        {
            **deployment,
            "name": f"d-{index}",
            "aggregated": {
                "pool": document["spec"]["pools"][0]["name"],
                "replicas": replicas,
                "tensorParallelSize": size,
            },
        }
        for index, (replicas, size) in enumerate(sizes)
    ]
    return workers(Blueprint.model_validate(document))


def best_fit(order: tuple[int, ...], nodes: int) -> bool:
    """Whether all find a node when each takes the fullest that has room."""
    used = [0] * nodes
    for size in order:
        fitting = [node for node in range(nodes) if used[node] + size <= _PER_NODE]
        if not fitting:
            return False
        used[max(fitting, key=lambda node: used[node])] += size
    return True


def anyhow(sizes: list[int], used: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way in which workers can stand on nodes."""
    if not sizes:
        yield used
    for node in range(len(used)) if sizes else ():
        if used[node] + sizes[0] <= _PER_NODE:
            yield from anyhow(sizes[1:], (*used[:node], used[node] + sizes[0], *used[node + 1 :]))


def test_prefill_and_decode_workers_of_a_pool_stand_beside_each_other() -> None:
    prefill, decode = workers(load_blueprint("p5en-disaggregated").blueprint)
    assert prefill.neighbours == (Neighbour(1, 1), Neighbour(4, 4))
    assert decode.neighbours == (Neighbour(1, 4), Neighbour(4, 16))


def test_deployments_of_a_pool_do_too(make_blueprint: Make) -> None:
    small, large = beside(make_blueprint, (12, 1), (1, 4))
    assert small.neighbours
    assert large.neighbours


def test_workers_of_one_size_are_spread(make_blueprint: Make) -> None:
    (worker,) = beside(make_blueprint, (16, 1))
    assert worker.neighbours == ()


def test_workers_that_cannot_do_each_other_harm_are_spread(make_blueprint: Make) -> None:
    small, large = beside(make_blueprint, (2, 1), (2, 4))
    assert small.neighbours == large.neighbours == ()


def test_a_worker_of_a_whole_node_has_no_neighbour(make_blueprint: Make) -> None:
    small, large = beside(make_blueprint, (8, 1), (1, 8))
    assert small.neighbours == (Neighbour(1, 1),)
    assert large.neighbours == ()


@given(
    st.dictionaries(st.sampled_from(_SIZES), st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 3),
)
def test_where_none_is_stranded_no_way_of_standing_strands_one(counts: Mapping[int, int], nodes: int) -> None:
    sizes = [size for size, count in counts.items() for _ in range(count)]
    if strands(counts, nodes=nodes, accelerators_per_node=_PER_NODE):
        return
    for last in set(sizes):
        others = list(sizes)
        others.remove(last)
        # The first on the first node: nodes are alike.
        assert all(min(used) + last <= _PER_NODE for used in anyhow(others, (0,) * nodes))


@given(st.lists(st.sampled_from(_SIZES), min_size=1, max_size=24))
def test_taking_the_fullest_node_wastes_none(order: list[int]) -> None:
    assert best_fit(tuple(order), -(-sum(order) // _PER_NODE))


def test_six_and_six_strand_the_large_one() -> None:
    assert strands({1: 12, 4: 1}, nodes=2, accelerators_per_node=8)
    assert not strands({1: 12, 4: 1}, nodes=3, accelerators_per_node=8)


@pytest.mark.parametrize("name", sorted(catalog.instance_types()))
def test_weights_are_within_what_kubernetes_takes(name: str) -> None:
    count = catalog.instance_type(name).accelerator_count
    sizes = [size for size in range(1, count + 1) if count % size == 0]
    products = [one * other for one, other in itertools.product(sizes, repeat=2) if one + other <= count]
    assert all(1 <= product <= 100 for product in products)


def test_a_plan_without_pools_in_common_stays_as_it_is(make_blueprint: Make) -> None:
    blueprint = make_blueprint()
    plan = build_plan(blueprint)
    assert set_neighbours(plan.models, blueprint.spec.pools) == plan.models
