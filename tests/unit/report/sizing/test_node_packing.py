"""Packing workers onto nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

import inference_catalog as catalog
from inference_blueprints.report.sizing.node_packing import (
    PackedNode,
    Worker,
    cheapest_placement,
    place,
    workers_of_pool,
)
from inference_blueprints.serving.types import Accelerators, Resources
from tests.unit.plan_samples import ChangedScene

MakeWorker = Callable[..., Worker]


@pytest.fixture
def worker(changed: ChangedScene) -> MakeWorker:
    plan = changed(lambda spec: spec).plan
    process = workers_of_pool(plan, "l40s")[0].process

    def build(accelerators: int, cpu: int = 1, memory_mib: int = 1024) -> Worker:
        held = Accelerators("nvidia.com/gpu", accelerators) if accelerators else None
        resources = Resources(
            cpu=cpu,
            memory_mib=memory_mib,
            shared_memory_mib=0,
            ephemeral_storage_mib=1024,
            efa_interfaces=0,
            accelerators=held,
        )
        return Worker("m", "d", dataclasses.replace(process, resources=resources))

    return build


def placed_on(workers: list[Worker], kind: catalog.InstanceType) -> list[PackedNode]:
    placed = place(workers, kind)
    assert placed is not None
    return placed


def test_every_replica_on_the_pool_and_no_other_process(changed: ChangedScene) -> None:
    plan = changed(lambda spec: spec).plan
    assert [worker.process.name for worker in workers_of_pool(plan, "l40s")] == ["worker", "worker"]
    assert workers_of_pool(plan, "another") == []


@pytest.mark.parametrize(
    ("accelerators", "nodes"),
    [([1] * 4, [4]), ([4, 1, 4, 1], [4, 4, 2]), ([2, 2, 1, 3], [4, 4]), ([3, 3, 1, 1], [4, 4]), ([], [])],
)
def test_devices_fill_nodes(worker: MakeWorker, accelerators: list[int], nodes: list[int]) -> None:
    placed = placed_on([worker(count) for count in accelerators], catalog.instance_type("g6e.12xlarge"))
    assert [sum(each.accelerator_count for each in node.workers) for node in placed] == nodes


def test_memory_and_processors_fill_nodes_too(worker: MakeWorker) -> None:
    kind = catalog.instance_type("g6e.12xlarge")
    assert len(placed_on([worker(1, memory_mib=kind.memory_mib)] * 3, kind)) == 3
    assert len(placed_on([worker(1, cpu=kind.vcpu // 2)] * 3, kind)) == 2
    assert len(placed_on([worker(0, cpu=kind.vcpu)] * 3, kind)) == 3


def test_a_worker_larger_than_a_node_has_no_place(worker: MakeWorker) -> None:
    assert place([worker(8)], catalog.instance_type("g6e.12xlarge")) is None
    with pytest.raises(ValueError, match="no instance type"):
        cheapest_placement([worker(8)], [catalog.instance_type("g6e.12xlarge")])


def test_the_cheapest_type_that_holds_all_is_taken(worker: MakeWorker) -> None:
    kinds = [catalog.instance_type(name) for name in ("g6e.48xlarge", "g6e.12xlarge", "g6e.2xlarge")]
    assert {node.instance_type.name for node in cheapest_placement([worker(1)] * 2, kinds)} == {"g6e.2xlarge"}
    assert [node.instance_type.name for node in cheapest_placement([worker(8), worker(1)], kinds)] == [
        "g6e.48xlarge"
    ] * 2


def test_a_type_without_a_price_comes_last(worker: MakeWorker) -> None:
    priced = catalog.instance_type("g6e.48xlarge")
    unpriced = dataclasses.replace(catalog.instance_type("g6e.2xlarge"), usd_per_hour=None)
    assert cheapest_placement([worker(1)], [unpriced, priced])[0].instance_type is priced
    assert cheapest_placement([worker(1)], [unpriced])[0].instance_type is unpriced


def test_ten_thousand_workers_are_placed(worker: MakeWorker) -> None:
    assert len(placed_on([worker(1)] * 10_000, catalog.instance_type("g6e.12xlarge"))) == 2500
