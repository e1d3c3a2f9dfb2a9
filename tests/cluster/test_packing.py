"""Workers of several sizes fill their pool's nodes exactly in any order of arrival, on the real scheduler."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from inference_blueprints.operate.kubernetes import Kubectl
from tests.cluster import matrix
from tests.cluster.nodes import nodes_of
from tests.cluster.objects import KubernetesObject, component_deployments, manifests, own_objects
from tests.cluster.state import has, in_namespace, named_pool, pods, renamed, usable_nodes
from tests.templates.support import Templates

#: Accelerators of each worker, as they arrive.
Order = tuple[int, ...]

_PACKED = [name for name, pool in matrix.POOLS.items() if len(pool.workers) > 1]
_RANDOM_ORDERS = 12


def _orders(workers: Mapping[int, int]) -> list[Order]:
    """Every place of the only large worker among small ones; where there are more, orders by chance."""
    if sorted(workers.values())[0] == 1 and len(workers) == 2:
        (small, count), (large, _) = workers.items()
        return [(*[small] * place, large, *[small] * (count - place)) for place in range(count + 1)]
    arrivals = [size for size, count in workers.items() for _ in range(count)]
    chance = random.Random(0)  # noqa: S311 - the same orders in every run
    return [tuple(chance.sample(arrivals, len(arrivals))) for _ in range(_RANDOM_ORDERS)]


@pytest.fixture
def make_nodes(kubectl: Kubectl, matrix_platform: Templates) -> Iterator[Callable[[str, list[str]], None]]:
    """Make the nodes of a pool, in several zones, once for each of some other names of it."""
    node_pools = {
        each["metadata"]["name"]: each for each in manifests(matrix_platform) if each["kind"] == "NodePool"
    }
    made: list[KubernetesObject] = []

    def make(pool: str, names: list[str]) -> None:
        count = matrix.POOLS[pool].nodes["max"]
        for name in names:
            nodes = nodes_of(node_pools[pool], count, prefix=f"{name}.", zones=matrix.ZONES)
            made.extend(renamed(pool, name, nodes))
        kubectl.apply(made)
        kubectl.wait_until(lambda: usable_nodes(kubectl) >= set(_names(made)), "nodes take pods")

    yield make
    kubectl.run("delete", "nodes", *_names(made), "--wait=false")


@pytest.mark.parametrize("pool", _PACKED)
def test_workers_fill_their_nodes_in_any_order(
    pool: str,
    kubectl: Kubectl,
    namespace: str,
    make_nodes: Callable[[str, list[str]], None],
    matrix_platform: Templates,
) -> None:
    orders = {f"{pool}-{number}": order for number, order in enumerate(_orders(matrix.POOLS[pool].workers))}
    make_nodes(pool, list(orders))
    templates = _templates(matrix_platform, pool)

    kubectl.apply(
        in_namespace(
            namespace,
            [
                each
                for name, order in orders.items()
                for each in renamed(pool, name, _arrivals(name, order, templates))
            ],
        )
    )
    left = _left_over(kubectl, namespace)

    assert not left, {name: orders[named_pool(worker)] for name, worker in left.items()}


def test_spreading_would_leave_the_large_worker_over(
    kubectl: Kubectl,
    namespace: str,
    make_nodes: Callable[[str, list[str]], None],
    matrix_platform: Templates,
) -> None:
    make_nodes("p5en", ["spread"])
    workers = _arrivals("spread", (*[1] * 12, 4), _templates(matrix_platform, "p5en"))
    for worker in workers:
        del worker["spec"]["affinity"]["podAffinity"]
        (by_zone,) = worker["spec"]["topologySpreadConstraints"]
        worker["spec"]["topologySpreadConstraints"] = [
            {**by_zone, "maxSkew": 1, "topologyKey": key}
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ]

    kubectl.apply(in_namespace(namespace, renamed("p5en", "spread", workers)))

    assert list(_left_over(kubectl, namespace)) == ["spread-12"]


def _names(objects: Sequence[KubernetesObject]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def _templates(platform: Templates, pool: str) -> dict[int, KubernetesObject]:
    """Pod templates of a pool's workers by their accelerators."""
    found = [each["spec"]["template"] for each in component_deployments(own_objects(platform))]
    return {
        int(template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]): template
        for template in found
        if named_pool(template) == pool
    }


def _arrivals(name: str, order: Order, templates: Mapping[int, KubernetesObject]) -> list[KubernetesObject]:
    """Pods in the order of their arrival, which is that of their numbers."""
    workers = []
    for number, size in enumerate(order):
        worker = copy.deepcopy(templates[size])
        worker["metadata"]["name"] = f"{name}-{number}"
        workers.append({"apiVersion": "v1", "kind": "Pod", **worker})
    return workers


def _left_over(kubectl: Kubectl, namespace: str) -> dict[str, KubernetesObject]:
    """The pods for which the scheduler found no node, once it has seen all."""
    found: list[KubernetesObject] = []

    def all_seen() -> bool:
        found[:] = pods(kubectl, namespace)
        return all(has(pod, "PodScheduled") or has(pod, "PodScheduled", "False") for pod in found)

    kubectl.wait_until(all_seen, "the scheduler has seen every pod")
    return {pod["metadata"]["name"]: pod for pod in found if not has(pod, "PodScheduled")}
