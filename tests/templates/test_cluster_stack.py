"""The control plane, its nodes, and who may do what."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from inference_constructs.eks.inference_cluster import LAYER_HELM, PROGRAM_PATH
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, text


def test_the_control_plane_is_private_encrypted_and_logged(base_templates: Templates) -> None:
    cluster = base_templates.only("AWS::EKS::Cluster")
    network = cluster["ResourcesVpcConfig"]
    assert (network["EndpointPrivateAccess"], network["EndpointPublicAccess"]) == (True, False)
    assert len(network["SubnetIds"]) == 3
    assert all("PrivateSubnet" in text(subnet) for subnet in network["SubnetIds"])
    assert cluster["AccessConfig"] == {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    }
    (encryption,) = cluster["EncryptionConfig"]
    assert "Key" in text(encryption["Provider"]["KeyArn"])
    assert encryption["Resources"] == ["secrets"]
    enabled = cluster["Logging"]["ClusterLogging"]["EnabledTypes"]
    assert {each["Type"] for each in enabled} == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }
    assert cluster["Version"] == "1.35"
    assert cluster["BootstrapSelfManagedAddons"] is False


def test_a_public_endpoint_is_the_blueprints_choice(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec["cluster"]["eks"].update(endpointAccess="publicAndPrivate"))
    network = templates.only("AWS::EKS::Cluster")["ResourcesVpcConfig"]
    assert (network["EndpointPrivateAccess"], network["EndpointPublicAccess"]) == (True, True)


def test_control_plane_logs_expire_and_the_group_is_there_before_eks_makes_its_own(
    base_templates: Templates,
) -> None:
    # Amazon EKS User Guide, "Send control plane logs to CloudWatch Logs": the name of the group.
    resources = base_templates.by_stack["Cluster"]["Resources"]
    (group,) = [
        name
        for name, resource in resources.items()
        if resource["Type"] == "AWS::Logs::LogGroup"
        and resource["Properties"].get("LogGroupName") == "/aws/eks/try/cluster"
    ]
    assert resources[group]["Properties"]["RetentionInDays"] == 90
    assert resources[group]["DeletionPolicy"] == "Delete"
    (cluster,) = [each for each in resources.values() if each["Type"] == "AWS::EKS::Cluster"]
    assert group in cluster["DependsOn"]


@pytest.mark.parametrize(("extended", "support"), [(False, "STANDARD"), (True, "EXTENDED")])
def test_extended_support_costs_more_and_is_the_blueprints_choice(
    synthesise: Synthesise, *, extended: bool, support: str
) -> None:
    # AWS CloudFormation Template Reference, AWS::EKS::Cluster UpgradePolicy: without it, EXTENDED.
    templates = synthesise(lambda spec: spec["cluster"]["eks"].update(extendedSupport=extended))
    assert templates.only("AWS::EKS::Cluster")["UpgradePolicy"] == {"SupportType": support}


def test_system_nodes(base_templates: Templates) -> None:
    nodegroup = base_templates.only("AWS::EKS::Nodegroup")
    assert nodegroup["AmiType"] == "BOTTLEROCKET_x86_64"
    assert nodegroup["NodeRepairConfig"] == {"Enabled": True}
    assert nodegroup["ScalingConfig"] == {"MinSize": 2, "DesiredSize": 2, "MaxSize": 3}
    assert all("PrivateSubnet" in text(subnet) for subnet in nodegroup["Subnets"])
    data = base_templates.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert data["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert {mapping["Ebs"]["Encrypted"] for mapping in data["BlockDeviceMappings"]} == {True}
    tag = {"Key": "inference-blueprints:platform", "Value": "try"}
    assert [(each["ResourceType"], each["Tags"]) for each in data["TagSpecifications"]] == [
        ("instance", [tag]),
        ("volume", [tag]),
    ]


def test_add_ons_and_their_order(base_templates: Templates) -> None:
    before, after = _add_ons_around_nodes(base_templates)
    assert before == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent"}
    assert after == {"coredns", "metrics-server"}
    (plug_in,) = [a for a in base_templates.properties("AWS::EKS::Addon") if a["AddonName"] == "vpc-cni"]
    configuration = json.loads(plug_in["ConfigurationValues"])
    assert configuration["env"]["ENABLE_PREFIX_DELEGATION"] == "true"
    # Without it, network policies have no effect; the add-on's schema wants a text.
    assert configuration["enableNetworkPolicy"] == "true"


def test_secrets_are_read_only_where_a_model_has_one(synthesise: Synthesise) -> None:
    def gated(spec: dict[str, Any]) -> None:
        arn = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
        spec["models"][0]["weights"]["tokenSecretArn"] = arn

    templates = synthesise(gated)
    driver = "aws-secrets-store-csi-driver-provider"
    assert driver in _add_ons_around_nodes(templates)[1]
    stays = {
        each["AddonName"] for each in templates.properties("AWS::EKS::Addon") if each.get("PreserveOnDelete")
    }
    assert stays == {driver}, "models that give up their secret are updated after the cluster"


def test_nodes_have_no_rights_but_to_join_to_pull_and_to_accept_sessions(base_templates: Templates) -> None:
    roles = [
        role
        for role in base_templates.properties("AWS::IAM::Role", "Cluster")
        if "ec2.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])
    ]
    assert len(roles) == 2
    for role in roles:
        assert [text(arn).rsplit("/", 1)[1] for arn in role["ManagedPolicyArns"]] == [
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryPullOnly",
        ]
        (policy,) = role["Policies"]
        (statement,) = policy["PolicyDocument"]["Statement"]
        # AWS Systems Manager User Guide, "Create a custom IAM role for Session Manager".
        assert set(statement["Action"]) == {
            "ssm:UpdateInstanceInformation",
            "ssmmessages:CreateControlChannel",
            "ssmmessages:CreateDataChannel",
            "ssmmessages:OpenControlChannel",
            "ssmmessages:OpenDataChannel",
        }


def test_each_service_account_has_its_own_role(base_templates: Templates) -> None:
    associations = base_templates.properties("AWS::EKS::PodIdentityAssociation")
    assert {(a["Namespace"], a["ServiceAccount"]) for a in associations} == {
        ("kube-system", "aws-node"),
        ("kube-system", "karpenter"),
        ("kube-system", "aws-load-balancer-controller"),
    }
    assert len({text(a["RoleArn"]) for a in associations}) == 3


def test_karpenters_nodes_may_join(base_templates: Templates) -> None:
    (entry,) = [e for e in base_templates.properties("AWS::EKS::AccessEntry") if e.get("Type") == "EC2_LINUX"]
    assert text(entry["PrincipalArn"]).startswith("${KarpenterNodeRole")


def test_the_handler_alone_is_administrator(base_templates: Templates) -> None:
    entries = base_templates.properties("AWS::EKS::AccessEntry")
    (administrator,) = [entry for entry in entries if "AccessPolicies" in entry]
    assert "KubectlProviderHandler" in text(administrator["PrincipalArn"])


def test_pods_take_model_requests_from_the_load_balancer_alone(base_templates: Templates) -> None:
    ingress = base_templates.only("AWS::EC2::SecurityGroupIngress", "Cluster")
    egress = base_templates.only("AWS::EC2::SecurityGroupEgress", "Cluster")
    for rule in (ingress, egress):
        assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 8000, 8000)
        assert "CidrIp" not in rule
    assert "ModelsSecurityGroup" in text(ingress["SourceSecurityGroupId"])
    assert "ClusterSecurityGroupId" in text(egress["DestinationSecurityGroupId"])


def _add_ons_around_nodes(templates: Templates) -> tuple[set[str], set[str]]:
    """Names of the add-ons that the node group waits for, and of those that wait for it."""
    resources = templates.by_stack["Cluster"]["Resources"]
    (nodegroup_id,) = [key for key, each in resources.items() if each["Type"] == "AWS::EKS::Nodegroup"]
    add_ons = {key: each for key, each in resources.items() if each["Type"] == "AWS::EKS::Addon"}
    before = {
        add_on["Properties"]["AddonName"]
        for key, add_on in add_ons.items()
        if key in resources[nodegroup_id]["DependsOn"]
    }
    after = {
        add_on["Properties"]["AddonName"]
        for add_on in add_ons.values()
        if nodegroup_id in add_on.get("DependsOn", [])
    }
    return before, after


def test_cdks_handler_runs_the_helm_that_overwrites(
    base_templates: Templates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if a release of aws-cdk-lib looks for programs in another order: then deployments fail again after
    a controller or a person has set a field of a chart."""
    (handler,) = (
        each
        for each in base_templates.properties("AWS::Lambda::Function", "Cluster")
        if "kubectl" in each.get("Description", "")
    )
    assert any("ForcingHelm" in text(layer) for layer in handler["Layers"])
    assets = json.loads((base_templates.directory / "try-Cluster.assets.json").read_text())["files"].values()
    sources = [base_templates.directory / each["source"]["path"] for each in assets]
    (code,) = (each for each in sources if (each / "index.py").is_file() and (each / "helm").is_dir())
    monkeypatch.syspath_prepend(str(code))
    monkeypatch.setenv("PATH", "/usr/bin")
    # The handler's folder is an asset: bytecode in it would change the asset's digest for other tests.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    importlib.import_module("index")
    for name in set(sys.modules) - before:
        monkeypatch.delitem(sys.modules, name)
    path = os.environ["PATH"].split(":")
    assert path.index(f"/opt/{Path(PROGRAM_PATH).parent}") < path.index(str(Path(LAYER_HELM).parent))
