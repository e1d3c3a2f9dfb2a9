"""The stand-in for Karpenter, kubelets and the operator: what comes, goes, is evicted and replaced."""

from __future__ import annotations

import pytest

from tests.unit.local.controllers.nodes import READY_SINCE, START_SECONDS, names, nodes_of


def test_the_first_nodes_are_ready_since_before_the_run() -> None:
    nodes, _ = nodes_of(2)
    assert (names(nodes), nodes.ready) == (["l40s-node-1", "l40s-node-2"], 2)
    assert {each.ready_at for each in nodes} == {READY_SINCE}


def test_a_node_joins_after_the_cold_start_and_is_occupied_before() -> None:
    nodes, workers = nodes_of(2)
    nodes.step(0.0, 3)
    assert (len(names(nodes)), nodes.occupying, nodes.serving) == (2, 3, 2)
    nodes.step(START_SECONDS, 3)
    assert (names(nodes)[-1], nodes.serving, nodes.ready) == ("l40s-node-3", 3, 3)
    assert workers.running == {"0", "1", "2"}


def test_a_pod_that_does_not_answer_is_not_ready() -> None:
    nodes, _ = nodes_of(1, ready=False)
    nodes.step(0.0, 2)
    nodes.step(START_SECONDS, 2)
    assert (nodes.serving, nodes.ready) == (2, 1)


def test_the_youngest_goes_with_its_node_when_its_process_has_ended() -> None:
    nodes, workers = nodes_of(3)
    nodes.step(0.0, 2)
    assert (workers.ending, len(names(nodes)), nodes.serving) == ({"2"}, 3, 2)
    workers.ended()
    nodes.step(1.0, 2)
    assert names(nodes) == ["l40s-node-1", "l40s-node-2"]


def test_an_evicted_pod_ends_and_another_node_comes_while_the_cordoned_one_stays() -> None:
    nodes, workers = nodes_of(2)
    first = next(iter(nodes))
    first.cordoned, first.evicted = True, True
    nodes.step(0.0, 2)
    assert (workers.ending, nodes.serving) == ({"0"}, 1)
    nodes.step(START_SECONDS, 2)
    assert nodes.serving == 2
    workers.ended()
    nodes.step(START_SECONDS + 1, 2)
    assert not first.has_pod
    assert names(nodes) == ["l40s-node-1", "l40s-node-2", "l40s-node-3"]
    first.claim_deleted = True
    nodes.step(START_SECONDS + 2, 2)
    assert names(nodes) == ["l40s-node-2", "l40s-node-3"]


def test_a_deleted_node_claim_ends_the_pod_first() -> None:
    nodes, workers = nodes_of(2)
    next(iter(nodes)).claim_deleted = True
    nodes.step(0.0, 2)
    assert (workers.ending, names(nodes)) == ({"0"}, ["l40s-node-1", "l40s-node-2"])


def test_a_slow_worker_is_the_same_pod_whose_process_starts_again_slower() -> None:
    nodes, workers = nodes_of(2)
    slow = nodes.slow_down(0.5)
    pod = nodes.pod_name(slow)
    nodes.step(0.0, 2)
    assert (workers.running, nodes.serving) == ({"1"}, 2)
    workers.ended()
    nodes.step(1.0, 2)
    assert workers.arguments["0"] == ("--speedup-ratio", "0.5")
    assert (nodes.pod_name(slow), slow.ready_at) == (pod, READY_SINCE)
    assert len(names(nodes)) == 2


def test_no_worker_can_be_slowed_if_none_is_ready() -> None:
    nodes, _ = nodes_of(0)
    with pytest.raises(StopIteration):
        nodes.slow_down(0.5)
