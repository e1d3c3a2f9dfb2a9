"""Nodes with Neuron devices: how many they offer, what their conditions say, and what an alarm does."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_health.node_reading import NodeObject
from inference_catalog.gpu_faults import gpu_faults_file
from inference_decisions.repairs.fault_rules import FaultRules
from tests.runtime.gpu_health.fake_cluster import moment, node_object
from tests.runtime.gpu_health.world import HealthWorld, report, xid_event


def neuron_node(offered: int | None, **condition: str) -> NodeObject:
    """Return a node of inf2.48xlarge, as Karpenter labels it and the device plug-in fills it."""
    node: dict[str, Any] = dict(node_object("a", created=0.0))
    node["metadata"]["labels"] = {
        "karpenter.sh/nodepool": "inferentia",
        # https://karpenter.sh/v1.15/concepts/scheduling/#well-known-labels
        "karpenter.k8s.aws/instance-accelerator-count": "12",
        "node.kubernetes.io/instance-type": "inf2.48xlarge",
    }
    node["status"]["allocatable"] = {} if offered is None else {"aws.amazon.com/neuron": str(offered)}
    if condition:
        node["status"]["conditions"].append({"lastTransitionTime": moment(0.0), **condition})
    return NodeObject(node)


@pytest.mark.parametrize(("offered", "counted"), [(12, 12), (11, 11), (0, 0), (None, 0)])
def test_a_node_offers_what_its_device_plug_in_registered(offered: int | None, counted: int) -> None:
    node = neuron_node(offered)
    assert node.gpus_allocatable == counted
    assert node.gpus_expected({}) == 12


def test_a_condition_of_a_device_is_a_signal_with_its_reason() -> None:
    broken = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "NeuronHBMUncorrectableError"}
    (signal,) = neuron_node(12, **broken).signals()
    assert signal.reason == "NeuronHBMUncorrectableError"
    evidence = FaultRules.parsed(gpu_faults_file().read_text("utf-8")).evidence(signal)
    assert evidence is not None
    assert (evidence.kind, evidence.code, evidence.fatal) == ("neuron", signal.reason, True)
    assert list(neuron_node(12, **{**broken, "status": "True"}).signals()) == []


@pytest.mark.parametrize(
    ("code", "cordoned"), [("mem_ecc_uncorrected", True), ("sram_ecc_uncorrected", True), ("hardware", False)]
)
def test_an_uncorrected_memory_error_alone_takes_a_node_out(
    world: HealthWorld, *, code: str, cordoned: bool
) -> None:
    report(world.cluster, world.now)
    world.hardware(xid_event("node-3", code, kind="neuron", at=world.now - 30))
    assert world.case("node-3") is not None
    assert (world.state("node-3") != "suspected") == cordoned
    assert bool(world.cluster.deleted_claims()) == cordoned
