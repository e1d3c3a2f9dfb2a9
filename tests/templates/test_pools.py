"""Pools: how nodes are paid for, which are kept, how they are marked, and their EFA interfaces."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from inference_local.manifests import validate_manifest
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, text

RESERVATION = {"id": "cr-0a1b2c3d4e5f60718"}


def pool(**fields: Any) -> Any:
    """A change that gives the base document's pool other fields, and its workers a whole node."""

    def change(spec: dict[str, Any]) -> None:
        spec["pools"][0].update(fields)
        spec["models"][0]["deployments"][0]["aggregated"]["tensorParallelSize"] = 8

    return change


def p5(**fields: Any) -> Any:
    """The same with a P5 pool."""
    return pool(**{"instanceTypes": ["p5.48xlarge"], **fields})


def requirements(templates: Templates, name: str = "l40s") -> dict[str, list[str]]:
    node_pool = templates.manifest("Capacity", "NodePool", name)
    return {each["key"]: each["values"] for each in node_pool["spec"]["template"]["spec"]["requirements"]}


def node_class(templates: Templates) -> dict[str, Any]:
    found: dict[str, Any] = templates.manifest("Capacity", "EC2NodeClass", "l40s")["spec"]
    return found


def interfaces(templates: Templates) -> list[tuple[int, int, str]]:
    return [
        (each["networkCardIndex"], each["deviceIndex"], each["interfaceType"])
        for each in node_class(templates).get("networkInterfaces", [])
    ]


@pytest.mark.parametrize(
    ("purchase", "kind"),
    [
        ({"reservation": RESERVATION}, "default"),
        ({"reservation": {"tags": {"team": "ads"}}}, "default"),
        ({"capacityBlock": RESERVATION}, "capacity-block"),
        ({"capacityBlock": {"tags": {"team": "ads"}}}, "capacity-block"),
    ],
)
def test_reserved_capacity_is_used_and_nothing_else(
    synthesise: Synthesise, purchase: dict[str, Any], kind: str
) -> None:
    templates = synthesise(p5(purchase=purchase))
    found = requirements(templates)
    assert found["karpenter.sh/capacity-type"] == ["reserved"]
    assert found["karpenter.k8s.aws/capacity-reservation-type"] == [kind]
    assert node_class(templates)["capacityReservationSelectorTerms"] == list(purchase.values())
    disruption = templates.manifest("Capacity", "NodePool", "l40s")["spec"]["disruption"]
    assert disruption["consolidateAfter"] == "Never"


def test_capacity_that_is_not_reserved_selects_no_reservation(base_templates: Templates) -> None:
    assert "capacityReservationSelectorTerms" not in node_class(base_templates)
    assert "karpenter.k8s.aws/capacity-reservation-type" not in requirements(base_templates)
    disruption = base_templates.manifest("Capacity", "NodePool", "l40s")["spec"]["disruption"]
    assert disruption["consolidateAfter"] == "5m"


def test_kept_nodes_and_the_others_are_the_maximum_together(synthesise: Synthesise) -> None:
    templates = synthesise(p5(nodes={"min": 2, "max": 5}))
    kept = templates.manifest("Capacity", "NodePool", "l40s.kept")["spec"]
    others = templates.manifest("Capacity", "NodePool", "l40s")["spec"]
    assert (kept["replicas"], kept["limits"]) == (2, {"nodes": "2"})
    assert others["limits"] == {"nodes": "3", "nvidia.com/gpu": "24"}
    assert "replicas" not in others
    assert kept["template"] == others["template"]


def test_a_pool_of_kept_nodes_alone_starts_no_others(synthesise: Synthesise) -> None:
    templates = synthesise(p5(nodes={"min": 2, "max": 2}))
    limits = templates.manifest("Capacity", "NodePool", "l40s")["spec"]["limits"]
    assert limits == {"nodes": "0", "nvidia.com/gpu": "0"}


def test_kept_nodes_come_and_go_by_a_manifest_of_their_own(synthesise: Synthesise) -> None:
    kept = synthesise(p5(nodes={"min": 1, "max": 4})).by_stack["Capacity"]["Resources"]
    without = synthesise(p5(nodes={"max": 4})).by_stack["Capacity"]["Resources"]
    (added,) = kept.keys() - without.keys()
    assert "l40s.kept" in text(kept[added]["Properties"]["Manifest"])
    # The node class goes last: its finalizer waits for the nodes of both.
    assert set(kept[added]["DependsOn"]) <= without.keys()


def test_karpenter_keeps_nodes_only_where_a_pool_has_a_minimum(synthesise: Synthesise) -> None:
    for minimum, enabled in ((1, "true"), (0, "false")):
        chart = synthesise(p5(nodes={"min": minimum, "max": 4})).charts("Platform")["karpenter"]
        assert f'"staticCapacity":{enabled}' in text(chart["Properties"]["Values"])


def test_karpenter_replaces_nodes_whose_hardware_the_monitoring_agent_reports_as_broken(
    base_templates: Templates,
) -> None:
    # Without the agent there are no conditions, and without the gate nobody acts on them
    # (https://karpenter.sh/v1.14/concepts/disruption/#node-auto-repair). The agent's program for GPUs
    # tolerates no taint unless it is told to (https://github.com/aws/containers-roadmap/issues/2567).
    [agent] = [
        each
        for each in base_templates.properties("AWS::EKS::Addon")
        if each["AddonName"] == "eks-node-monitoring-agent"
    ]
    [toleration] = json.loads(agent["ConfigurationValues"])["dcgmAgent"]["tolerations"]
    assert toleration == {"operator": "Exists"}
    chart = base_templates.charts("Platform")["karpenter"]
    assert '"nodeRepair":true' in text(chart["Properties"]["Values"])
    # Without it, release 1.15 starts a replacement before it ends a broken node (terminateFirstRepair in
    # charts/karpenter/values.yaml of aws/karpenter-provider-aws v1.15.1).
    assert '"legacyNodeRepair":true' in text(chart["Properties"]["Values"])


def test_a_zone_is_required_where_the_pool_names_one(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    templates = synthesise(p5(availabilityZone="us-west-2b"))
    assert requirements(templates)["topology.kubernetes.io/zone"] == ["us-west-2b"]
    assert "topology.kubernetes.io/zone" not in requirements(base_templates)


def test_labels_and_taints_are_added_and_workers_tolerate_them(synthesise: Synthesise) -> None:
    taints = [{"key": "team", "value": "ads"}, {"key": "night", "effect": "NoExecute"}]
    templates = synthesise(p5(labels={"team": "ads"}, taints=taints))
    node = templates.manifest("Capacity", "NodePool", "l40s")["spec"]["template"]
    assert node["metadata"]["labels"] == {"team": "ads", "inference-blueprints/pool": "l40s"}
    assert node["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
        {"key": "team", "value": "ads", "effect": "NoSchedule"},
        {"key": "night", "effect": "NoExecute"},
    ]
    values = text(templates.charts("Model-qwen3-8b")["qwen3-8b-main"]["Properties"]["Values"])
    for key in ("nvidia.com/gpu", "team", "night"):
        assert f'"key":"{key}"' in values


@pytest.mark.parametrize(
    ("instance_type", "first", "count"),
    [
        ("p5.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only")], 32),
        ("p5en.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only")], 16),
        ("p6-b200.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only")], 8),
        # Its first card is for IP alone.
        ("p6-b300.48xlarge", [(0, 0, "interface"), (1, 0, "efa-only"), (2, 0, "efa-only")], 16),
    ],
)
def test_a_node_starts_with_an_interface_of_efa_on_every_card(
    synthesise: Synthesise, instance_type: str, first: list[tuple[int, int, str]], count: int
) -> None:
    templates = synthesise(pool(instanceTypes=[instance_type], efa=True))
    found = interfaces(templates)
    assert found[:3] == first
    assert [kind for _, _, kind in found].count("efa-only") == count
    assert len({card for card, _, kind in found if kind == "efa-only"}) == count
    values = text(templates.charts("Model-qwen3-8b")["qwen3-8b-main"]["Properties"]["Values"])
    assert f'"efaInterfaces":{count}' in values


def test_types_of_several_layouts_leave_the_interfaces_to_karpenter(synthesise: Synthesise) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["pools"][0].update(instanceTypes=["g6e.12xlarge", "g6e.24xlarge"], efa=True)
        spec["models"][0]["deployments"][0]["aggregated"]["tensorParallelSize"] = 4

    templates = synthesise(change)
    assert interfaces(templates) == []
    values = text(templates.charts("Model-qwen3-8b")["qwen3-8b-main"]["Properties"]["Values"])
    assert '"efaInterfaces":1' in values


def test_efa_is_admitted_in_and_out_by_a_group_that_names_itself(synthesise: Synthesise) -> None:
    templates = synthesise(p5(efa=True))
    group = {"Fn::GetAtt": ["Efa", "GroupId"]}
    inward = templates.only("AWS::EC2::SecurityGroupIngress", "Capacity")
    outward = templates.only("AWS::EC2::SecurityGroupEgress", "Capacity")
    assert (inward["GroupId"], inward["SourceSecurityGroupId"], inward["IpProtocol"]) == (group, group, "-1")
    assert (outward["GroupId"], outward["DestinationSecurityGroupId"]) == (group, group)
    assert outward["IpProtocol"] == "-1"
    terms = [each["id"] for each in node_class(templates)["securityGroupSelectorTerms"]]
    assert len(terms) == 2
    assert "${Efa.GroupId}" in terms
    tags = templates.only("AWS::EC2::SecurityGroup", "Capacity")["Tags"]
    assert not [tag for tag in tags if tag["Key"].startswith("kubernetes.io/cluster")]


def test_pods_may_lock_all_memory_for_efa_and_none_is_set_aside(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    settings = tomllib.loads(node_class(synthesise(p5(efa=True)))["userData"])["settings"]
    limits = settings["oci-defaults"]["resource-limits"]["max-locked-memory"]
    assert limits == {"hard-limit": "unlimited", "soft-limit": "unlimited"}
    # Else Bottlerocket sets memory aside for EFA that no pod may have and Karpenter counts as free.
    assert settings["kernel"]["sysctl"] == {"vm/nr_hugepages": "0"}
    assert not {"oci-defaults", "kernel"} & set(
        tomllib.loads(node_class(base_templates)["userData"])["settings"]
    )


def test_the_efa_plug_in_is_installed_where_a_pool_has_efa_and_runs_there_alone(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    templates = synthesise(p5(efa=True))
    values = text(templates.charts("Platform")["aws-efa-k8s-device-plugin"]["Properties"]["Values"])
    labels = templates.manifest("Capacity", "NodePool", "l40s")["spec"]["template"]["metadata"]["labels"]
    assert '"supportedInstanceLabels":{"keys":["inference-blueprints/efa"],"values":["true"]}' in values
    assert labels["inference-blueprints/efa"] == "true"
    assert "aws-efa-k8s-device-plugin" not in base_templates.charts("Platform")
    others = base_templates.manifest("Capacity", "NodePool", "l40s")["spec"]["template"]["metadata"]
    assert "inference-blueprints/efa" not in others["labels"]


def test_node_pools_are_what_karpenter_takes(synthesise: Synthesise) -> None:
    fields = {"nodes": {"min": 1, "max": 3}, "purchase": {"reservation": RESERVATION}, "efa": True}
    templates = synthesise(p5(**fields, labels={"team": "ads"}, taints=[{"key": "team"}]))
    checked = [each for each in templates.manifests("Capacity") if each["kind"] == "NodePool"]
    assert len(checked) == 3
    assert [problem for each in checked for problem in validate_manifest(each, "1.35")] == []


@pytest.mark.parametrize(
    ("purchase", "period"),
    [
        ({"onDemand": {}}, "1h"),
        ({"reservation": RESERVATION}, "1h"),
        ({"spot": {}}, "2m"),
        ({"capacityBlock": RESERVATION}, "10m"),
    ],
    ids=["on demand", "reservation", "spot", "capacity block"],
)
def test_workers_are_told_to_end_before_aws_ends_their_node(
    synthesise: Synthesise, purchase: dict[str, object], period: str
) -> None:
    """Without this, a budget for one missing worker leaves the others of the node without SIGTERM."""
    pool = synthesise(p5(purchase=purchase)).manifest("Capacity", "NodePool", "l40s")
    assert pool["spec"]["template"]["spec"]["terminationGracePeriod"] == period


def test_streams_end_before_their_node_does(synthesise: Synthesise) -> None:
    templates = synthesise(p5())
    node = templates.manifest("Capacity", "NodePool", "l40s")["spec"]["template"]["spec"]
    assert node["terminationGracePeriod"] == "1h"
    values = text(templates.charts("Model-qwen3-8b")["qwen3-8b-main"]["Properties"]["Values"])
    graces = [int(part.split(",")[0].rstrip("}]")) for part in values.split('"terminationGraceSeconds":')[1:]]
    assert graces
    assert max(graces) < 3600
