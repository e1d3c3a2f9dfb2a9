"""Where pods of Dynamo's deployments are placed."""

from __future__ import annotations

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan
from inference_catalog import node_facts
from tests.charts.dynamo import DEPLOYMENTS, components, main_container, pods
from tests.charts.llm_d import BUCKET
from tests.charts.renderings import Manifest, Render


def test_workers_go_to_their_pool_and_nobody_else_does(
    manifests: list[Manifest], deployment: DeploymentPlan
) -> None:
    rendered = pods(manifests)
    for process in deployment.processes:
        pod = rendered[process.name]
        required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [term] = required["nodeSelectorTerms"]
        rules = {rule["key"]: rule for rule in term["matchExpressions"]}
        assert rules["kubernetes.io/arch"]["values"] == [process.architecture]
        pool = rules[node_facts.POOL_LABEL]
        if process.pool is None:
            assert pool["operator"] == "DoesNotExist"
            assert "tolerations" not in pod
            continue
        assert pool["values"] == [process.pool]
        assert process.resources.accelerators is not None
        resource = process.resources.accelerators.resource_name
        of_accelerators, *own = pod["tolerations"]
        assert of_accelerators == {
            "key": resource,
            "operator": "Equal",
            "value": node_facts.ACCELERATOR_TAINT_VALUE,
            "effect": node_facts.ACCELERATOR_TAINT_EFFECT,
        }
        assert [(each["key"], each["value"], each["effect"]) for each in own] == [
            (each.key, each.value, each.effect) for each in process.tolerations[1:]
        ]
        assert main_container(pod)["resources"]["limits"][resource] == str(
            process.resources.accelerators.count
        )


def test_spreading_is_a_wish_over_the_pods_of_one_process(
    manifests: list[Manifest], deployment: DeploymentPlan
) -> None:
    rendered = components(manifests)
    for process in deployment.processes:
        template = rendered[process.name]["podTemplate"]
        constraints = template["spec"]["topologySpreadConstraints"]
        by_zone, by_node = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
        # A large skew makes the wish smaller than that of standing beside others.
        # A spread over zones would undo the preference for one.
        spread = [(by_node, 1)] if process.zone else [(by_zone, 1), (by_node, 1)]
        assert [(each["topologyKey"], each["maxSkew"]) for each in constraints] == (
            [(by_zone, 1000)] if process.neighbours else spread
        )
        for each in constraints:
            assert each["whenUnsatisfiable"] == "ScheduleAnyway"
            assert each["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_frontends_prefer_the_only_zone_of_their_workers(render: Render) -> None:
    """Bytes between zones are billed, and a spread over zones would undo the preference."""
    deployment = DEPLOYMENTS["qwen3-32b-main"]
    zone = deployment.entry_point.zone
    assert zone is not None
    pod = pods(render(deployment_values(deployment, weights_bucket=BUCKET), deployment.release))["frontend"]
    rule = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    assert pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [
        {"weight": 100, "preference": {"matchExpressions": [rule]}}
    ]
    assert [each["topologyKey"] for each in pod["topologySpreadConstraints"]] == ["kubernetes.io/hostname"]


def test_packed_workers_stand_beside_the_workers_of_their_pool(render: Render) -> None:
    deployment = DEPLOYMENTS["qwen3-32b-main"]
    rendered = components(render(deployment_values(deployment, weights_bucket=BUCKET), deployment.release))
    labels = {
        process.name: rendered[process.name]["podTemplate"]["metadata"]["labels"]
        for process in deployment.processes
    }
    assert node_facts.ACCELERATORS_LABEL not in labels["frontend"]
    assert "podAffinity" not in rendered["frontend"]["podTemplate"]["spec"]["affinity"]
    weights = {}
    for name in ("prefill", "decode"):
        affinity = rendered[name]["podTemplate"]["spec"]["affinity"]["podAffinity"]
        [(kind, wishes)] = affinity.items()
        assert kind == "preferredDuringSchedulingIgnoredDuringExecution"
        for wish in wishes:
            term = wish["podAffinityTerm"]
            assert term["topologyKey"] == "kubernetes.io/hostname"
            selected = [
                other
                for other, found in labels.items()
                if term["labelSelector"]["matchLabels"].items() <= found.items()
            ]
            assert len(selected) == 1
            weights[name, selected[0]] = wish["weight"]
    # The product of their accelerators, so that a node's score is that of all accelerators in use on it.
    assert weights == {
        ("prefill", "prefill"): 1,
        ("prefill", "decode"): 4,
        ("decode", "prefill"): 4,
        ("decode", "decode"): 16,
    }
