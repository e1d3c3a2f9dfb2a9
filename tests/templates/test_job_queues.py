"""Queues: what lets jobs onto the pools, and what is left where nobody asked for them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from inference_catalog import node_facts
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, text

CHART = "Custom::AWSCDK-EKS-HelmChart"
MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
KINDS = ("ResourceFlavor", "ClusterQueue", "LocalQueue")


def queueing(**kueue: Any) -> Any:
    """A change that turns queues on, with a second pool of accelerators and one without."""

    def change(spec: dict[str, Any]) -> None:
        spec["queueing"] = {"kueue": kueue}
        spec["pools"] += [
            {
                "name": "b",
                "instanceTypes": ["g6e.12xlarge"],
                "nodes": {"max": 2},
                "taints": [{"key": "team", "value": "ads"}, {"key": "slow", "effect": "NoExecute"}],
            },
            {"name": "plain", "instanceTypes": ["m7i.xlarge"], "nodes": {"max": 1}},
        ]

    return change


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    """Queues that do not borrow."""
    return synthesise(queueing())


@pytest.fixture(scope="module")
def borrowing(synthesise: Synthesise) -> Templates:
    """Queues that do."""
    return synthesise(queueing(borrowing={}))


def spec_of(templates: Templates, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = templates.manifest("Capacity", kind, name)["spec"]
    return found


def flavors(templates: Templates, name: str) -> dict[str, dict[str, str]]:
    """Quota by resource, by flavor, in the order in which they are tried."""
    (group,) = spec_of(templates, "ClusterQueue", name)["resourceGroups"]
    quotas = {
        flavor["name"]: {each["name"]: each["nominalQuota"] for each in flavor["resources"]}
        for flavor in group["flavors"]
    }
    assert all(list(quota) == group["coveredResources"] for quota in quotas.values())
    return quotas


def test_without_the_section_there_is_neither_chart_nor_queue(base_templates: Templates) -> None:
    assert "kueue" not in json.dumps(base_templates.by_stack).lower()


def test_admitted_pods_go_to_the_pool_and_tolerate_its_taints(templates: Templates) -> None:
    assert spec_of(templates, "ResourceFlavor", "b") == {
        "nodeLabels": {node_facts.POOL_LABEL: "b"},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
            {"key": "team", "operator": "Equal", "value": "ads", "effect": "NoSchedule"},
            {"key": "slow", "operator": "Exists", "effect": "NoExecute"},
        ],
    }
    assert spec_of(templates, "ResourceFlavor", "plain")["tolerations"] == []


def test_a_queue_admits_what_the_models_leave_of_its_own_pool(templates: Templates) -> None:
    assert flavors(templates, "l40s").keys() == {"l40s"}
    # Four nodes of one GPU, of which the model's two workers have two.
    assert flavors(templates, "l40s")["l40s"]["nvidia.com/gpu"] == "2"
    assert flavors(templates, "b")["b"]["nvidia.com/gpu"] == "8"
    assert flavors(templates, "plain")["plain"].keys() == {"cpu", "memory"}


def test_queues_borrow_of_pools_of_the_same_kind_alone_and_of_their_own_first(borrowing: Templates) -> None:
    assert list(flavors(borrowing, "b")) == ["b", "l40s"]
    assert list(flavors(borrowing, "l40s")) == ["l40s", "b"]
    assert list(flavors(borrowing, "plain")) == ["plain"]
    assert set(flavors(borrowing, "b")["l40s"].values()) == {"0"}


def test_all_queues_are_in_one_cohort_and_take_back_what_they_lent(templates: Templates) -> None:
    for name in ("l40s", "b", "plain"):
        queue = spec_of(templates, "ClusterQueue", name)
        assert queue["cohortName"] == "try"
        assert queue["preemption"]["reclaimWithinCohort"] == "Any"
        assert "borrowWithinCohort" not in queue["preemption"], "nobody is stopped so that another borrows"
        assert queue["flavorFungibility"]["whenCanPreempt"] == "MayStopSearch", "reclaim before borrowing"


def test_only_jobs_of_the_models_namespace_are_admitted(templates: Templates) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "inference"}}
    door = templates.manifest("Capacity", "LocalQueue", "b")
    assert (door["metadata"]["namespace"], door["spec"]) == ("inference", {"clusterQueue": "b"})
    assert spec_of(templates, "ClusterQueue", "b")["namespaceSelector"] == selector
    values = json.loads(text(templates.charts("Capacity")["kueue"]["Properties"]["Values"]))
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["managedJobsNamespaceSelector"] == selector


def test_queues_go_before_the_controller_that_ends_them(templates: Templates) -> None:
    resources = templates.by_stack["Capacity"]["Resources"]
    (chart,) = (key for key, each in resources.items() if each["Type"] == CHART)
    queues = [
        each
        for each in resources.values()
        if each["Type"] == MANIFEST and "kueue" in json.dumps(each["Properties"])
    ]
    assert len(queues) == 3
    assert all(chart in each["DependsOn"] for each in queues)
    assert resources[chart]["Properties"]["Wait"] is True
