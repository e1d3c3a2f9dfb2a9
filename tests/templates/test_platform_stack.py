"""The controllers' charts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements, text

ORDER = ["karpenter-crd", "karpenter", "aws-load-balancer-controller", "dynamo-platform"]


def test_charts_are_installed_one_after_the_other(base_templates: Templates) -> None:
    resources = base_templates.by_stack["Platform"]["Resources"]
    ids = {
        each["Properties"]["Release"]: key
        for key, each in resources.items()
        if each["Type"] == "Custom::AWSCDK-EKS-HelmChart"
    }
    assert set(ids) == set(ORDER)
    for earlier, later in pairwise(ORDER):
        assert ids[earlier] in resources[ids[later]]["DependsOn"]


def test_charts_are_pinned_and_waited_for_ten_minutes_at_the_most(base_templates: Templates) -> None:
    for chart in base_templates.charts("Platform").values():
        properties = chart["Properties"]
        assert properties["Version"][0].isdigit()
        assert properties["Wait"] is True
        assert int(properties["Timeout"].removesuffix("s")) <= 600


def test_definitions_of_karpenter_come_from_a_chart_of_their_own(base_templates: Templates) -> None:
    repository = base_templates.charts("Platform")["karpenter-crd"]["Properties"]["Repository"]
    assert repository == "oci://public.ecr.aws/karpenter/karpenter-crd"


def test_karpenter_knows_cluster_and_queue(base_templates: Templates) -> None:
    settings = _values(base_templates, "karpenter")["settings"]
    assert settings["clusterName"] == "try"
    assert settings["interruptionQueue"].startswith("${try-Cluster.")
    assert "QueueName" in settings["interruptionQueue"]


def test_the_load_balancer_controller_needs_no_instance_metadata(base_templates: Templates) -> None:
    values = _values(base_templates, "aws-load-balancer-controller")
    assert (values["clusterName"], values["region"]) == ("try", "us-west-2")
    assert values["vpcId"].startswith("${try-Network.")


def test_the_load_balancer_controller_registers_with_our_target_groups_alone(
    base_templates: Templates,
) -> None:
    (role,) = base_templates.resources("AWS::IAM::Role", "Platform")
    read, register = statements(role)
    assert all(action.split(":")[1].startswith("Describe") for action in read["Action"])
    assert register["Action"] == [
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:RegisterTargets",
    ]
    assert register["Condition"] == {"StringEquals": {"aws:ResourceTag/inference-blueprints:platform": "try"}}


def test_our_target_groups_carry_the_tag_that_is_asked_for(base_templates: Templates) -> None:
    groups = base_templates.properties("AWS::ElasticLoadBalancingV2::TargetGroup")
    assert groups
    assert all({"Key": "inference-blueprints:platform", "Value": "try"} in group["Tags"] for group in groups)


def test_model_pods_are_ready_when_the_load_balancer_says_so(base_templates: Templates) -> None:
    namespace = base_templates.manifest("Platform", "Namespace", "inference")
    assert namespace["metadata"]["labels"]["elbv2.k8s.aws/pod-readiness-gate-inject"] == "enabled"


def test_secrets_are_written_in_the_models_namespace_alone_and_only_where_a_model_has_one(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    def gated(spec: dict[str, Any]) -> None:
        arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
        spec["models"][0]["weights"]["tokenSecretArn"] = arn

    templates = synthesise(gated)
    name = "inference-blueprints-secret-sync"
    verbs = {
        kind: templates.manifest("Platform", kind, name)["rules"][0]["verbs"]
        for kind in ("ClusterRole", "Role")
    }
    assert verbs == {"ClusterRole": ["get", "list", "watch"], "Role": ["create", "delete", "patch", "update"]}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        (subject,) = templates.manifest("Platform", kind, name)["subjects"]
        assert (subject["namespace"], subject["name"]) == ("aws-secrets-manager", "secrets-store-csi-driver")
    assert templates.manifest("Platform", "Role", name)["metadata"]["namespace"] == "inference"
    assert "ClusterRole" not in {each["kind"] for each in base_templates.manifests("Platform")}


def test_keda_comes_with_elastic_workers_and_may_scale_only_their_kind(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    def elastic(spec: dict[str, Any]) -> None:
        spec["observability"] = {}
        workers = spec["models"][0]["deployments"][0]["aggregated"]
        workers["replicas"] = {"min": 1, "max": 2}
        workers["scaledBy"] = {"load": {}}

    assert "keda" not in base_templates.charts("Platform")
    templates = synthesise(elastic)
    values = _values(templates, "keda")
    assert values["watchNamespace"] == "inference"
    assert values["rbac"] == {
        "enabledCustomScaledRefKinds": True,
        "scaledRefKinds": [{"apiGroup": "nvidia.com", "kind": "dynamographdeploymentscalingadapters"}],
    }
    keda = templates.charts("Platform")["keda"]["Properties"]
    [association] = [
        each
        for each in templates.properties("AWS::EKS::PodIdentityAssociation", "Platform")
        if each["Namespace"] == keda["Namespace"]
    ]
    assert association["ServiceAccount"] == values["serviceAccount"]["operator"]["name"]
    role = templates.by_stack["Platform"]["Resources"][association["RoleArn"]["Fn::GetAtt"][0]]
    assert "Policies" not in role["Properties"], "Prometheus needs no AWS permission"
    [model] = templates.charts("Model-qwen3-8b").values()
    processes = json.loads(text(model["Properties"]["Values"]))["processes"]
    [scaling] = [each["scaling"] for each in processes if "scaling" in each]
    assert (scaling["least"], scaling["most"]) == (1, 2)


def _values(templates: Templates, release: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text(templates.charts("Platform")[release]["Properties"]["Values"]))
    return values
