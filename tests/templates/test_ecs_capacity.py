"""Hosts on ECS: launch templates, Auto Scaling groups, Managed Instances and their roles."""

from __future__ import annotations

import base64
import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
import yaml
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

import app
import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_catalog.ecs_hosts import ecs_host_image
from inference_catalog.node_facts import efa_layout
from inference_contracts.ecs_names import NEURON_LOCKS_FOLDER
from stacks.ecs.capacity_stack import EcsCapacityStack
from stacks.ecs.cluster_stack import EcsClusterStack
from tests.templates.conftest import BASE
from tests.templates.support import Resource
from tests.unit.render.ecs.one_word import on_ecs

ZONES = ["us-west-2a", "us-west-2b"]
SUBNETS = ["subnet-0123456789abcdefa", "subnet-0123456789abcdefb"]
Synthesised = Callable[..., dict[str, Resource]]


@pytest.fixture(scope="module")
def capacity(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Synthesise the Capacity stack of a pool, without findings of cdk-nag. Equal pools are done once."""
    done: dict[str, dict[str, Resource]] = {}

    def build(*, managed: bool = False, shipped: str | None = None, **changes: Any) -> dict[str, Resource]:
        key = json.dumps([managed, shipped, changes], sort_keys=True)
        if key not in done:
            folder = tmp_path_factory.mktemp("capacity")
            done[key] = _synthesise(folder, changes, managed=managed, shipped=shipped)
        return done[key]

    return build


def _synthesise(
    folder: Path, changes: dict[str, Any], *, managed: bool, shipped: str | None
) -> dict[str, Resource]:
    document = yaml.safe_load(on_ecs(shipped)) if shipped else copy.deepcopy(dict(BASE))
    document["spec"]["pools"][0] |= changes
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document))
    blueprint = load_blueprint(str(folder / "blueprint.yaml")).blueprint
    stacks = cdk.App(outdir=str(folder / "cdk.out"), analytics_reporting=False)
    cdk.Validations.of(stacks).add_plugins(cdk_nag.AwsSolutionsChecks(stacks))
    env = cdk.Environment(region="us-west-2")
    network = cdk.Stack(stacks, "Network", env=env)
    vpc = ec2.Vpc.from_vpc_attributes(
        network,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        vpc_cidr_block="10.0.0.0/16",
        availability_zones=ZONES,
        private_subnet_ids=SUBNETS,
    )
    cluster = EcsClusterStack(
        stacks,
        "Cluster",
        cluster_name="try",
        vpc=vpc,
        load_balancer_security_group=ec2.SecurityGroup(network, "Callers", vpc=vpc, allow_all_outbound=False),
        model_ports=[8000],
        insights=True,
        encryption_key=kms.Key(network, "Key", enable_key_rotation=True),
        runs_commands=False,
        retention_days=30,
        env=env,
    )
    EcsCapacityStack(
        stacks,
        "Capacity",
        cluster_name="try",
        pools=blueprint.spec.pools,
        managed_pools=frozenset(["l40s"] if managed else []),
        plan=build_plan(blueprint),
        image=ecs_host_image(),
        vpc=vpc,
        members=cluster.members,
        instance_tags={"team": "search"},
        env=env,
    )
    app.synthesise(stacks)
    return {
        **json.loads((folder / "cdk.out" / "Capacity.template.json").read_text())["Resources"],
        **json.loads((folder / "cdk.out" / "Cluster.template.json").read_text())["Resources"],
    }


def _only(resources: dict[str, Resource], kind: str) -> dict[str, Any]:
    [found] = _all(resources, kind)
    return found


def _all(resources: dict[str, Resource], kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in resources.values() if each["Type"] == kind]


def _template(resources: dict[str, Resource]) -> dict[str, Any]:
    data: dict[str, Any] = _only(resources, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    return data


def _user_data(resources: dict[str, Resource]) -> str:
    return base64.b64decode(_template(resources)["UserData"]).decode()


P5EN = {"instanceTypes": ["p5en.48xlarge"], "efa": True, "availabilityZone": "us-west-2b"}


def test_hosts_are_private_encrypted_and_ask_for_a_token(capacity: Synthesised) -> None:
    template = _template(capacity())
    assert template["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpPutResponseHopLimit": 1,
        "HttpTokens": "required",
    }
    [volume] = template["BlockDeviceMappings"]
    assert volume["Ebs"]["Encrypted"] is True
    assert volume["Ebs"]["VolumeSize"] == 30 + 200
    for kind in ("instance", "volume"):
        [tags] = [each["Tags"] for each in template["TagSpecifications"] if each["ResourceType"] == kind]
        assert {"Key": "team", "Value": "search"} in tags


def test_hosts_boot_one_release_of_the_image(capacity: Synthesised) -> None:
    # Amazon ECS Developer Guide, "Retrieving Amazon ECS-optimized Linux AMI metadata".
    image = _template(capacity())["ImageId"]
    assert image.startswith(
        "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/al2023-ami-ecs-"
    )
    assert ecs_host_image().version in image
    assert "recommended" not in image


def test_hosts_without_gpus_boot_the_image_of_their_architecture(capacity: Synthesised) -> None:
    """It turns red if a host of processors boots the image for GPUs, or its Docker needs NVIDIA's runtime."""
    # Amazon ECS Developer Guide, "Retrieving Amazon ECS-optimized Linux AMI metadata".
    resources = capacity(shipped="graviton-llama-cpp")
    version = ecs_host_image().version
    name = f"/aws/service/ecs/optimized-ami/amazon-linux-2023/arm64/al2023-ami-ecs-hvm-2023.0.{version}"
    assert _template(resources)["ImageId"].startswith(f"resolve:ssm:{name}")
    assert "nvidia" not in _user_data(resources)
    assert "ECS_ENABLE_GPU_SUPPORT" not in _user_data(resources)


def test_neuron_hosts_boot_the_image_with_their_driver(capacity: Synthesised) -> None:
    # aws/amazon-ecs-ami, al2023neu.pkr.hcl and generate-release-notes.sh.
    resources = capacity(shipped="inf2")
    release = f"2023.0.{ecs_host_image().version}"
    name = f"/aws/service/ecs/optimized-ami/amazon-linux-2023/neuron/al2023-ami-ecs-neuron-hvm-{release}"
    assert _template(resources)["ImageId"].startswith(f"resolve:ssm:{name}")
    assert "nvidia" not in _user_data(resources)


def test_tasks_of_a_host_with_neuron_devices_find_the_folder_of_their_locks(capacity: Synthesised) -> None:
    """Docker would make it for root alone. It turns red if no task of the host can lock a device."""
    script = _user_data(capacity(shipped="trn2")).splitlines()
    for command in ("mkdir --parents", "chown 1000:0", "chmod 0770"):
        [line] = [each for each in script if each.startswith(command) and NEURON_LOCKS_FOLDER in each.split()]
        assert script.index(line) < script.index("systemctl start docker")
    assert NEURON_LOCKS_FOLDER not in _user_data(capacity())


def test_efa_hosts_have_every_interface_and_one_address(capacity: Synthesised) -> None:
    interfaces = _template(capacity(**P5EN))["NetworkInterfaces"]
    wanted = efa_layout(catalog.instance_type("p5en.48xlarge"))
    assert [
        (each["NetworkCardIndex"], each["DeviceIndex"], each["InterfaceType"]) for each in interfaces
    ] == [(each.network_card, each.device, each.kind) for each in wanted]
    assert all(len(each["Groups"]) == 2 for each in interfaces)
    assert "SecurityGroupIds" not in _template(capacity(**P5EN))
    assert _only(capacity(**P5EN), "AWS::AutoScaling::AutoScalingGroup")["VPCZoneIdentifier"] == SUBNETS[1:]
    # Tasks name 16 devices, and a host that lacks one must not join.
    assert '[ "$found" -lt 16 ]' in _user_data(capacity(**P5EN))


def test_ecs_drains_hosts_before_they_stop(capacity: Synthesised) -> None:
    provider = _only(capacity(), "AWS::ECS::CapacityProvider")["AutoScalingGroupProvider"]
    assert provider["ManagedDraining"] == "ENABLED"
    assert provider["ManagedTerminationProtection"] == "ENABLED"
    assert provider["ManagedScaling"]["Status"] == "ENABLED"
    group = _only(capacity(), "AWS::AutoScaling::AutoScalingGroup")
    # Termination protection needs it (Amazon ECS API Reference, AutoScalingGroupProvider).
    assert group["NewInstancesProtectedFromScaleIn"] is True
    assert (group["MinSize"], group["MaxSize"]) == ("0", "4")
    assert "DesiredCapacity" not in group
    assert group["VPCZoneIdentifier"] == SUBNETS


def test_names_of_providers_begin_with_no_reserved_word(capacity: Synthesised) -> None:
    names = {each["Name"] for each in _all(capacity(), "AWS::ECS::CapacityProvider")}
    assert names == {"pool-try-l40s"}
    associations = _only(capacity(), "AWS::ECS::ClusterCapacityProviderAssociations")
    assert associations["CapacityProviders"] == ["FARGATE", "FARGATE_SPOT", "pool-try-l40s"]


def test_the_list_of_the_cluster_has_no_managed_instances(capacity: Synthesised) -> None:
    """ECS refuses the list with one (hashicorp/terraform-provider-aws#44783), and the stack would fail."""
    resources = capacity(managed=True)
    associations = _only(resources, "AWS::ECS::ClusterCapacityProviderAssociations")
    assert associations["CapacityProviders"] == ["FARGATE", "FARGATE_SPOT"]
    assert _only(resources, "AWS::ECS::CapacityProvider")["ClusterName"] == "try"


@pytest.mark.parametrize(("managed", "kind"), [(False, "pool"), (True, "managed")])
def test_spot_with_fall_back_has_a_provider_for_each(
    capacity: Synthesised, *, managed: bool, kind: str
) -> None:
    resources = capacity(managed=managed, purchase={"spot": {"onDemandFallback": True}})
    names = {each["Name"] for each in _all(resources, "AWS::ECS::CapacityProvider")}
    assert names == {f"{kind}-try-l40s", f"{kind}-try-l40s-spot"}


def test_no_resource_changes_from_one_kind_of_host_to_the_other(capacity: Synthesised) -> None:
    """CloudFormation would replace a provider under its name, and ECS has the name already."""
    of_kind = [
        {name for name, each in capacity(managed=managed).items() if each["Type"].endswith("Provider")}
        for managed in (False, True)
    ]
    assert not of_kind[0] & of_kind[1]


def test_spot_hosts_are_bought_as_spot_alone(capacity: Synthesised) -> None:
    resources = capacity(purchase={"spot": {}}, instanceTypes=["g6e.2xlarge", "g6e.4xlarge"])
    group = _only(resources, "AWS::AutoScaling::AutoScalingGroup")
    policy = group["MixedInstancesPolicy"]
    assert policy["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 0
    assert policy["InstancesDistribution"]["OnDemandBaseCapacity"] == 0
    assert [each["InstanceType"] for each in policy["LaunchTemplate"]["Overrides"]] == [
        "g6e.2xlarge",
        "g6e.4xlarge",
    ]
    assert group["CapacityRebalance"] is True


@pytest.mark.parametrize(
    ("purchase", "market"),
    [
        ({"reservation": {"id": "cr-0123456789abcdef0"}}, None),
        ({"capacityBlock": {"id": "cr-0123456789abcdef0"}}, {"MarketType": "capacity-block"}),
    ],
)
def test_no_host_starts_outside_reserved_capacity(
    capacity: Synthesised, purchase: dict[str, Any], market: dict[str, str] | None
) -> None:
    template = _template(capacity(purchase=purchase, instanceTypes=["p5en.48xlarge"]))
    assert template["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"},
    }
    assert template.get("InstanceMarketOptions") == market


@pytest.mark.thorough
def test_a_script_of_the_first_start_that_a_shell_accepts(capacity: Synthesised, tmp_path: Path) -> None:
    for changes in ({}, P5EN):
        script = _user_data(capacity(**changes))
        assert len(script) < 16_384  # Amazon EC2 User Guide, "Run commands when you launch an EC2 instance".
        (tmp_path / "script").write_text(script)
        subprocess.run(["bash", "-n", tmp_path / "script"], check=True)


def test_hosts_pull_the_images_of_their_pool_before_they_join(capacity: Synthesised) -> None:
    script = _user_data(capacity()).splitlines()
    [pull] = [index for index, line in enumerate(script) if line.startswith("docker pull ")]
    assert "vllm-runtime" in script[pull]
    assert script.index("systemctl start docker") < pull


def test_settings_of_the_agent(capacity: Synthesised) -> None:
    settings = dict(
        line.split("=", 1) for line in _user_data(capacity()).splitlines() if line.startswith("ECS_")
    )
    assert settings["ECS_CLUSTER"] == "try"
    assert settings["ECS_ENABLE_GPU_SUPPORT"] == "true"
    assert settings["ECS_ENABLE_SPOT_INSTANCE_DRAINING"] == "true"
    # Tasks in host mode get their own credentials, and not those of the host.
    assert settings["ECS_ENABLE_TASK_IAM_ROLE_NETWORK_HOST"] == "true"
    assert settings["ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE"] == "true"
    assert json.loads(settings["ECS_INSTANCE_ATTRIBUTES"]) == {"inference-blueprints.pool": "l40s"}


def test_only_root_reaches_the_credentials_of_the_host(capacity: Synthesised) -> None:
    script = _user_data(capacity())
    assert "-d 169.254.169.254 -m owner ! --uid-owner root -j REJECT" in script
    assert script.index("metadata-for-root.service") < script.index("systemctl start docker")


def test_images_and_weights_are_on_nvme_if_all_types_have_it(capacity: Synthesised) -> None:
    assert catalog.instance_type("g6e.2xlarge").local_nvme_gb
    assert "mkfs.xfs" in _user_data(capacity())
    assert "Throughput" not in _template(capacity())["BlockDeviceMappings"][0]["Ebs"]


def test_hosts_may_join_their_cluster_alone(capacity: Synthesised) -> None:
    [role] = [
        each for each in _all(capacity(), "AWS::IAM::Role") if each["Policies"][0]["PolicyName"] == "Host"
    ]
    statements = {each["Sid"]: each for each in role["Policies"][0]["PolicyDocument"]["Statement"]}
    assert json.dumps(statements["JoinCluster"]["Resource"]).endswith(':cluster/try"]]}')
    assert json.dumps(statements["FollowCluster"]["Condition"]["ArnEquals"]["ecs:cluster"]).endswith(
        ':cluster/try"]]}'
    )
    everywhere = [each["Sid"] for each in statements.values() if each["Resource"] == "*"]
    assert sorted(everywhere) == ["FindCluster", "Sessions"]
    assert "AmazonEC2ContainerServiceforEC2Role" not in json.dumps(role)


def test_managed_instances_have_the_types_and_the_disk_of_the_pool(capacity: Synthesised) -> None:
    resources = capacity(managed=True)
    provider = _only(resources, "AWS::ECS::CapacityProvider")
    template = provider["ManagedInstancesProvider"]["InstanceLaunchTemplate"]
    assert provider["ClusterName"] == "try"
    assert template["InstanceRequirements"]["AllowedInstanceTypes"] == ["g6e.2xlarge"]
    assert template["CapacityOptionType"] == "ON_DEMAND"
    assert template["LocalStorageConfiguration"] == {"UseLocalStorage": True}
    assert template["NetworkConfiguration"]["Subnets"] == SUBNETS
    # EC2 starts no instance whose tags are in its metadata and have a key such as "Cost Center".
    assert template["InstanceMetadataTagsPropagation"] is False
    assert provider["ManagedInstancesProvider"]["AutoRepairConfiguration"] == {"ActionsStatus": "ENABLED"}
    assert not _all(resources, "AWS::AutoScaling::AutoScalingGroup")


def test_nobody_connects_to_a_managed_instance(capacity: Synthesised) -> None:
    """Its tasks have addresses and a group of their own. A host in their group turns this red."""
    resources = capacity(managed=True)
    provider = _only(resources, "AWS::ECS::CapacityProvider")
    [group] = provider["ManagedInstancesProvider"]["InstanceLaunchTemplate"]["NetworkConfiguration"][
        "SecurityGroups"
    ]
    name, _ = group["Fn::GetAtt"]
    assert "SecurityGroupIngress" not in resources[name]["Properties"]
    rules = _all(resources, "AWS::EC2::SecurityGroupIngress")
    assert not [rule for rule in rules if rule["GroupId"] == group]


@pytest.mark.parametrize(("purchase", "key"), [({"onDemand": {}}, "OnDemand"), ({"spot": {}}, "Spot")])
def test_each_type_of_a_pool_may_be_started_whatever_it_costs(
    capacity: Synthesised, purchase: dict[str, Any], key: str
) -> None:
    """EC2 leaves out types that cost over 20 percent more than the cheapest one."""
    types = ["g6e.2xlarge", "g6e.4xlarge"]
    resources = capacity(managed=True, purchase=purchase, instanceTypes=types)
    provider = _only(resources, "AWS::ECS::CapacityProvider")["ManagedInstancesProvider"]
    requirements = provider["InstanceLaunchTemplate"]["InstanceRequirements"]
    assert requirements["AllowedInstanceTypes"] == types
    assert requirements[f"{key}MaxPricePercentageOverLowestPrice"] == 999_999


def test_ecs_may_pass_the_role_of_managed_instances_to_ec2_alone(capacity: Synthesised) -> None:
    # Amazon ECS Developer Guide, "Amazon ECS Managed Instances instance profile": AWS's policy passes only
    # roles whose names begin with ecsInstanceRole, and CloudFormation chooses another.
    roles = _all(capacity(managed=True), "AWS::IAM::Role")
    [passing] = [each for each in roles if "Policies" in each]
    [statement] = passing["Policies"][0]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "iam:PassRole"
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    assert set(statement["Resource"]) == {"Fn::GetAtt"}


def test_only_the_load_balancer_reaches_models_from_outside(capacity: Synthesised) -> None:
    resources = capacity()
    rules = _all(resources, "AWS::EC2::SecurityGroupIngress")
    assert all("CidrIp" not in rule and "CidrIpv6" not in rule for rule in rules)
    ports = {(rule["FromPort"], rule["ToPort"], rule["Description"]) for rule in rules}
    assert ports == {
        (0, 65535, "Hosts and tasks, from each other"),
        (8000, 8000, "Models, from their load balancer"),
    }
    [group] = _all(resources, "AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group
