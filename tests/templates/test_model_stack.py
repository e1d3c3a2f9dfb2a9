"""A model's releases, its route, and what its pods may read."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from inference_constructs.serving.model_route import listener_priorities, listener_weights
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements, text

STACK = "Model-qwen3-8b"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"


def two_by_two(spec: dict[str, Any]) -> None:
    spec["pools"][0]["nodes"]["max"] = 20
    model = spec["models"][0]
    small = copy.deepcopy(model["deployments"][0]) | {"name": "small"}
    small["aggregated"]["replicas"] = 6
    model["deployments"].append(small)
    spec["models"].append(copy.deepcopy(model) | {"name": "other"})


def weights(**fields: Any) -> Any:
    return lambda spec: spec["models"][0].update(weights=fields)


def test_a_release_a_deployment_from_our_chart(synthesise: Synthesise) -> None:
    templates = synthesise(two_by_two)
    assert list(templates.charts(STACK)) == ["qwen3-8b-main", "qwen3-8b-small"]
    assert list(templates.charts("Model-other")) == ["other-main", "other-small"]
    for chart in templates.charts(STACK).values():
        assert chart["Properties"]["ChartAssetURL"]["Fn::Sub"].endswith("/ASSET.zip")
        assert chart["Properties"]["Namespace"] == "inference"


def test_nothing_waits_for_accelerators(base_templates: Templates) -> None:
    (chart,) = base_templates.charts(STACK).values()
    assert not {"Wait", "Atomic"} & chart["Properties"].keys()


def test_the_values_are_the_plans(base_templates: Templates) -> None:
    worker = _worker(base_templates)
    assert (worker["replicas"], worker["pool"]) == (2, "l40s")
    assert worker["resources"]["accelerators"] == {"resourceName": "nvidia.com/gpu", "count": 1}


@pytest.mark.parametrize(("nodes", "surge"), [(2, 0), (3, 1)])
def test_a_rolling_update_needs_no_accelerator_that_the_pool_lacks(
    synthesise: Synthesise, nodes: int, surge: int
) -> None:
    templates = synthesise(lambda spec: spec["pools"][0]["nodes"].update(max=nodes))
    rollout, worker = _worker(templates)["rollout"], _worker(templates)
    limit = int(templates.manifest("Capacity", "NodePool", "l40s")["spec"]["limits"]["nvidia.com/gpu"])
    assert rollout["maxSurge"] == surge
    assert worker["replicas"] + rollout["maxSurge"] <= limit
    assert rollout["maxUnavailable"] >= 1


def test_requests_for_the_host_go_to_every_deployment_by_its_workers(synthesise: Synthesise) -> None:
    templates = synthesise(two_by_two)
    rule = templates.only("AWS::ElasticLoadBalancingV2::ListenerRule", STACK)
    (action,) = rule["Actions"]
    targets = action["ForwardConfig"]["TargetGroups"]
    assert [(_kind(target["TargetGroupArn"]), target["Weight"]) for target in targets] == [
        ("RouteTargetsmain", 2),
        ("RouteTargetssmall", 6),
    ]


@pytest.mark.parametrize("stack", ["dynamo", "llmD", "direct"])
def test_only_the_api_of_a_model_is_reachable(synthesise: Synthesise, stack: str) -> None:
    """Red if a caller reaches what an entry point has for its operator, such as `/busy_threshold`."""
    templates = synthesise(lambda spec: spec["models"][0].update(stack={stack: {}}))
    host, path = templates.only("AWS::ElasticLoadBalancingV2::ListenerRule", STACK)["Conditions"]
    assert host["HostHeaderConfig"] == {"Values": ["qwen3-8b.try.internal"]}
    assert path == {"Field": "path-pattern", "PathPatternConfig": {"Values": ["/v1/*"]}}


def test_the_load_balancer_binds_servers_without_a_router(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec["models"][0].update(stack={"direct": {}}))
    [release] = templates.charts(STACK)
    binding = templates.manifest(STACK, "TargetGroupBinding", release)
    assert binding["spec"]["serviceRef"] == {"name": f"{release}-server", "port": 8000}
    group = templates.only("AWS::ElasticLoadBalancingV2::TargetGroup", STACK)
    assert group["HealthCheckPath"] == "/health"
    attributes = {each["Key"]: each["Value"] for each in group["TargetGroupAttributes"]}
    assert attributes["load_balancing.algorithm.type"] == "least_outstanding_requests"
    server = _processes(templates)["server"]
    assert int(attributes["deregistration_delay.timeout_seconds"]) == server["terminationGraceSeconds"]


def test_two_models_never_share_a_priority(synthesise: Synthesise) -> None:
    rules = synthesise(two_by_two).properties("AWS::ElasticLoadBalancingV2::ListenerRule")
    assert len({rule["Priority"] for rule in rules}) == 2


def test_target_groups_take_healthy_pods_and_let_streams_end(base_templates: Templates) -> None:
    group = base_templates.only("AWS::ElasticLoadBalancingV2::TargetGroup", STACK)
    attributes = {each["Key"]: each["Value"] for each in group["TargetGroupAttributes"]}
    frontend = _processes(base_templates)["frontend"]
    assert (group["TargetType"], group["Port"]) == ("ip", frontend["ports"][0]["number"])
    assert group["HealthCheckPath"] == frontend["probes"]["readiness"]["path"]
    assert int(attributes["deregistration_delay.timeout_seconds"]) >= frontend["terminationGraceSeconds"]


def test_pods_are_bound_to_their_target_group(synthesise: Synthesise) -> None:
    templates = synthesise(two_by_two)
    bindings = [m for m in templates.manifests(STACK) if m["kind"] == "TargetGroupBinding"]
    assert [(b["spec"]["serviceRef"], _kind(b["spec"]["targetGroupARN"])) for b in bindings] == [
        ({"name": "qwen3-8b-main-frontend", "port": 8000}, "RouteTargetsmain"),
        ({"name": "qwen3-8b-small-frontend", "port": 8000}, "RouteTargetssmall"),
    ]
    assert {b["metadata"]["namespace"] for b in bindings} == {"inference"}
    assert [b["metadata"]["name"] for b in bindings] == ["qwen3-8b-main", "qwen3-8b-small"]
    manifests = templates.properties("Custom::AWSCDK-EKS-KubernetesResource", STACK)
    assert len(manifests) == len(bindings), "what vanishes from a manifest stays in the cluster"
    # Opening security groups is CloudFormation's business, and the controller has no right to.
    assert not [b for b in bindings if "networking" in b["spec"]]


def test_pods_start_after_their_route(base_templates: Templates) -> None:
    (chart,) = base_templates.charts(STACK).values()
    awaited = {base_templates.by_stack[STACK]["Resources"][key]["Type"] for key in chart["DependsOn"]}
    assert "Custom::AWSCDK-EKS-KubernetesResource" in awaited
    assert "AWS::ElasticLoadBalancingV2::ListenerRule" in awaited


def test_public_weights_need_no_rights(base_templates: Templates) -> None:
    assert not base_templates.resources("AWS::IAM::Role", STACK)


@pytest.mark.parametrize("slash", ["/", ""])
def test_weights_in_s3_are_read_below_their_prefix_alone(synthesise: Synthesise, slash: str) -> None:
    """Without a slash at the end of the prefix, workers could read `qwen3-8b-secret/` too."""
    templates = synthesise(weights(s3=f"s3://acme-models/qwen3-8b{slash}", catalog="Qwen/Qwen3-8B"))
    (role,) = templates.resources("AWS::IAM::Role", STACK)
    listing, reading, decrypting = statements(role)
    assert listing["Resource"] == "arn:aws:s3:::acme-models"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["qwen3-8b/*"]}}
    assert reading["Action"] == "s3:GetObject"
    assert reading["Resource"] == ["arn:aws:s3:::acme-models/qwen3-8b/*"]
    assert decrypting["Action"] == "kms:Decrypt"
    assert text(decrypting["Condition"]["StringEquals"]["kms:ViaService"]) == "s3.us-west-2.${AWS::URLSuffix}"
    assert decrypting["Condition"]["StringLike"] == {
        "kms:EncryptionContext:aws:s3:arn": [
            "arn:aws:s3:::acme-models",
            "arn:aws:s3:::acme-models/qwen3-8b/*",
        ]
    }
    association = templates.only("AWS::EKS::PodIdentityAssociation", STACK)
    assert association["Namespace"] == "inference"
    assert association["ServiceAccount"] == "qwen3-8b-main-k8s-service-discovery"


def test_a_gated_models_token_is_read_and_written_nowhere(synthesise: Synthesise) -> None:
    change = weights(huggingFace="Qwen/Qwen3-8B", revision="main", tokenSecretArn=HUB_ARN)
    templates = synthesise(change)
    (role,) = templates.resources("AWS::IAM::Role", STACK)
    reading, decrypting = statements(role)
    assert reading["Resource"] == HUB_ARN
    service = text(decrypting["Condition"]["StringEquals"]["kms:ViaService"])
    assert service == "secretsmanager.us-west-2.${AWS::URLSuffix}"
    assert "secretsmanager:GetSecretValue" in reading["Action"]
    assert "{{resolve" not in json.dumps(templates.by_stack)


def test_priorities_depend_on_the_name_alone() -> None:
    names = [f"model-{number}" for number in range(100)]
    everyone = listener_priorities(names)
    assert len(set(everyone.values())) == len(names)
    assert all(1 <= priority <= 50_000 for priority in everyone.values())
    assert listener_priorities(names[50:])["model-70"] == everyone["model-70"]


def test_names_that_meet_get_neighbouring_priorities() -> None:
    alone = {name: listener_priorities([name])[name] for name in (f"model-{n}" for n in range(2000))}
    by_priority: dict[int, list[str]] = {}
    for name, priority in alone.items():
        by_priority.setdefault(priority, []).append(name)
    first, second = sorted(next(names for names in by_priority.values() if len(names) == 2))
    assert listener_priorities([second, first]) == {first: alone[first], second: alone[first] + 1}


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"a": 2, "b": 6}, {"a": 2, "b": 6}),
        ({"a": 10_000, "b": 5_000}, {"a": 999, "b": 500}),
        ({"a": 10_000, "b": 1}, {"a": 999, "b": 1}),
    ],
)
def test_weights_keep_their_proportion_within_the_listeners_bounds(
    shares: dict[str, int], expected: dict[str, int]
) -> None:
    assert listener_weights(shares) == expected


def _processes(templates: Templates) -> dict[str, Any]:
    (chart,) = templates.charts(STACK).values()
    return {process["name"]: process for process in json.loads(chart["Properties"]["Values"])["processes"]}


def _worker(templates: Templates) -> dict[str, Any]:
    worker: dict[str, Any] = _processes(templates)["worker"]
    return worker


def _kind(reference: Any) -> str:
    """Spell a reference without the hash that ends its logical id."""
    return text(reference).removeprefix("${").removesuffix("}")[:-8]


@pytest.mark.parametrize("scorer", ["approximate", "precise"])
def test_a_stack_changes_with_nothing_of_the_route(
    synthesise: Synthesise, base_templates: Templates, scorer: str
) -> None:
    """Target groups, rule and binding stay; so do release and resources, whose chart alone is another."""
    changed = synthesise(lambda spec: spec["models"][0].update(stack={"llmD": {"prefixScorer": scorer}}))
    kinds = ("AWS::ElasticLoadBalancingV2::TargetGroup", "AWS::ElasticLoadBalancingV2::ListenerRule")
    for kind in kinds:
        one, other = (dict(each.only(kind, STACK)) for each in (base_templates, changed))
        # Streams of the router may take longer to end.
        one.pop("TargetGroupAttributes", None)
        other.pop("TargetGroupAttributes", None)
        assert one == other
    assert list(changed.charts(STACK)) == list(base_templates.charts(STACK))
    before, after = (each.by_stack[STACK]["Resources"].keys() for each in (base_templates, changed))
    assert before == after


def test_a_model_on_llm_d_is_bound_by_its_router(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec["models"][0].update(stack={"llmD": {}}))
    (binding,) = [each for each in templates.manifests(STACK) if each["kind"] == "TargetGroupBinding"]
    assert binding["spec"]["serviceRef"] == {"name": "qwen3-8b-main-router", "port": 8000}
    assert binding["metadata"]["name"] == "qwen3-8b-main", "as on Dynamo: kubectl would leave the other one"


def test_pods_on_llm_d_have_the_identity_of_their_own_account(synthesise: Synthesise) -> None:
    def gated(spec: dict[str, Any]) -> None:
        spec["models"][0] |= {
            "stack": {"llmD": {}},
            "weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": "main", "tokenSecretArn": HUB_ARN},
        }

    association = synthesise(gated).only("AWS::EKS::PodIdentityAssociation", STACK)
    assert association["ServiceAccount"] == "qwen3-8b-main-vllm"


def test_the_definition_of_inference_pool_comes_with_the_first_model_that_needs_it(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    needed = synthesise(lambda spec: spec["models"][0].update(stack={"llmD": {}}))
    assert "inference-pool-crd" in needed.charts("Platform")
    assert "inference-pool-crd" not in base_templates.charts("Platform")


@pytest.mark.parametrize(("stack", "charts"), [("dynamo", set()), ("llmD", {"lws"})])
def test_what_makes_groups_of_nodes_comes_with_the_first_worker_that_spans_some(
    stack: str, charts: set[str], synthesise: Synthesise, base_templates: Templates
) -> None:
    def across(spec: dict[str, Any]) -> None:
        spec["pools"][0] |= {
            "instanceTypes": ["p5en.48xlarge"],
            "nodes": {"max": 2},
            "efa": True,
            "availabilityZone": "us-west-2a",
        }
        model = spec["models"][0]
        model |= {"stack": {stack: {}}, "weights": {"huggingFace": "deepseek-ai/DeepSeek-R1"}}
        model["deployments"][0]["aggregated"] |= {
            "replicas": 1,
            "tensorParallelSize": 8,
            "pipelineParallelSize": 2,
        }

    def grove(templates: Templates) -> bool:
        values = json.loads(text(templates.charts("Platform")["dynamo-platform"]["Properties"]["Values"]))
        return bool(values["global"]["grove"]["install"])

    templates = synthesise(across)
    assert {"lws"} & templates.charts("Platform").keys() == charts
    assert grove(templates) == (stack == "dynamo")
    assert "lws" not in base_templates.charts("Platform")
    assert not grove(base_templates)
