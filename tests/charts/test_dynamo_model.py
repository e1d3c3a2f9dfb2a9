from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.catalog.charts import charts
from inference_blueprints.local.manifests import validate_manifest
from inference_blueprints.resources import blueprints_directory, charts_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, FilePath, OwnAddress, WeightsBucket
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.targets.eks.model_values import deployment_values
from tests.charts.llm_d import BUCKET

CHART = charts_directory() / "dynamo-model"
KUBERNETES_VERSION = "1.35"
REVIEWED = Path(__file__).parent / "rendered"
CACHES = {"XDG_CACHE_HOME": "/cache", "HF_HOME": "/cache/huggingface"}
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]
RunHelm = Callable[..., subprocess.CompletedProcess[str]]
Staged = Callable[[str], str]


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def components(manifests: list[Manifest]) -> dict[str, Manifest]:
    [graph] = of_kind(manifests, "DynamoGraphDeployment")
    return {component["name"]: component for component in graph["spec"]["components"]}


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    return {name: component["podTemplate"]["spec"] for name, component in components(manifests).items()}


def main_container(pod: Manifest) -> Manifest:
    [container] = pod["containers"]
    assert container["name"] == "main", "the operator merges its own defaults into the container of this name"
    return dict(container)


def with_secret(values: Manifest) -> Manifest:
    changed = copy.deepcopy(values)
    changed["secrets"] = [{"key": "HF_TOKEN", "arn": HUB_ARN}]
    changed["processes"][1]["environment"].append({"name": "HF_TOKEN", "secret": "HF_TOKEN"})
    return changed


def test_helm_finds_nothing_to_complain_of(run_helm: RunHelm, values: Manifest, staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged("dynamo-model"), values=values)
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


def test_every_object_is_valid_and_of_a_known_kind(render: Render, values: Manifest) -> None:
    for manifest in (*render(values), *render(with_secret(values))):
        assert validate_manifest(manifest, KUBERNETES_VERSION) == []


def test_every_pod_template_is_valid_for_kubernetes_itself(render: Render, values: Manifest) -> None:
    for name, component in components(render(with_secret(values))).items():
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}}
        assert validate_manifest({**template, "template": component["podTemplate"]}, KUBERNETES_VERSION) == []


def test_the_rendering_is_as_reviewed(render: Render, values: Manifest, deployment: DeploymentPlan) -> None:
    reviewed = (REVIEWED / f"{deployment.release}.yaml").read_text(encoding="utf-8")
    shown = copy.deepcopy(render(values, deployment.release))
    for program in of_kind(shown, "ConfigMap"):
        # The program itself is reviewed where it is written.
        program["data"] = sorted(program["data"])
    assert shown == list(yaml.safe_load_all(reviewed))


def test_programs_are_given_what_the_plan_says(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    rendered = components(render(values))
    assert list(rendered) == [process.name for process in deployment.processes]
    for process in deployment.processes:
        component = rendered[process.name]
        container = main_container(component["podTemplate"]["spec"])
        assert container["image"] == process.image
        assert container["command"] == list(process.command)
        assert container["args"] == list(process.arguments)
        assert component.get("replicas") == (None if process.scaling else process.replicas)
        assert component["type"] == process.role
        literal = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
        planned = {name: value for name, value in process.environment.items() if isinstance(value, str)}
        planned |= {
            name: f"/mnt/files/{value.name}"
            for name, value in process.environment.items()
            if isinstance(value, FilePath)
        }
        streamed = {
            name: BUCKET for name, value in process.environment.items() if isinstance(value, WeightsBucket)
        }
        assert literal == planned | streamed | CACHES
        own = {name for name, value in process.environment.items() if isinstance(value, OwnAddress)}
        fields = {
            entry["name"]: entry["valueFrom"]["fieldRef"]
            for entry in container["env"]
            if "valueFrom" in entry
        }
        assert fields == {name: {"fieldPath": "status.podIP"} for name in own}


@pytest.mark.parametrize(("engine", "framework"), [("sglang", "sglang"), ("tensorrtLlm", "trtllm")])
def test_the_operator_is_told_which_engine_it_is(render: Render, engine: str, framework: str) -> None:
    path = blueprints_directory() / "p5en-disaggregated.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["spec"]["models"][0]["engine"] = {engine: {}}
    deployment = build_plan(Blueprint.model_validate(document)).models[0].deployments[0]
    manifests = render(deployment_values(deployment, weights_bucket=BUCKET))
    [graph] = of_kind(manifests, "DynamoGraphDeployment")
    assert graph["spec"]["backendFramework"] == framework
    for process in deployment.workers:
        container = main_container(components(manifests)[process.name]["podTemplate"]["spec"])
        assert container["command"] == ["python3", "-m", f"dynamo.{framework}"]
        assert container["args"] == list(process.arguments)
    assert validate_manifest(graph, KUBERNETES_VERSION) == []


def test_switches_have_no_value(render: Render, values: Manifest) -> None:
    for pod in pods(render(values)).values():
        assert not {"true", "false", "True", "False"} & set(main_container(pod)["args"])


def test_images_are_pinned(render: Render, values: Manifest) -> None:
    for pod in pods(render(values)).values():
        tag = main_container(pod)["image"].partition("@")[0].rpartition(":")[2]
        assert tag[0].isdigit(), "the operator reads the release from the tag"


def test_every_check_and_the_drain_are_there(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    rendered = pods(render(values))
    for process in deployment.processes:
        pod = rendered[process.name]
        container = main_container(pod)
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] in ports
        assert pod["terminationGracePeriodSeconds"] == process.termination_grace_seconds
        sleep = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        assert sleep == process.pre_stop_seconds
    frontend = main_container(rendered[deployment.entry_point.name])
    assert frontend["lifecycle"]["preStop"]["sleep"]["seconds"] > 0


def test_a_disruption_budget_selects_its_pods_and_never_blocks_a_drain(
    render: Render, values: Manifest
) -> None:
    manifests = render(values)
    budgets = of_kind(manifests, "PodDisruptionBudget")
    selected = {}
    for budget in budgets:
        labels = budget["spec"]["selector"]["matchLabels"]
        [name] = [
            name
            for name, component in components(manifests).items()
            if labels.items() <= component["podTemplate"]["metadata"]["labels"].items()
        ]
        selected[name] = budget["spec"]
    assert selected.keys() == components(manifests).keys()
    for spec in selected.values():
        assert spec["maxUnavailable"] >= 1
        assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_a_rolling_update_takes_the_strategy_of_the_plan(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    rendered = components(render(values))
    for process in deployment.processes:
        annotations = rendered[process.name]["podTemplate"]["metadata"]["annotations"]
        prefix = "nvidia.com/deployment-rolling-update-max"
        spanning = {"nvidia.com/vllm-distributed-executor-backend": "mp"} if process.nodes > 1 else {}
        assert annotations == spanning | {
            f"{prefix}-surge": str(process.rollout.max_surge),
            f"{prefix}-unavailable": str(process.rollout.max_unavailable),
        }


def test_the_operator_is_told_of_the_nodes_of_a_worker_and_to_use_grove_for_them_alone(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    manifests = render(values)
    (graph,) = (each for each in manifests if each["kind"] == "DynamoGraphDeployment")
    nodes = {process.name: process.nodes for process in deployment.processes if process.nodes > 1}
    assert graph["metadata"]["annotations"] == {"nvidia.com/enable-grove": str(bool(nodes)).lower()}
    assert {
        name: component["multinode"]["nodeCount"]
        for name, component in components(manifests).items()
        if "multinode" in component
    } == nodes


def test_pods_have_no_privilege_but_to_lock_memory_for_rdma(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    spans = any(process.nodes > 1 for process in deployment.processes)
    locks = {"add": ["IPC_LOCK"]} if deployment.kv_transfer == "libfabric" or spans else {}
    for name, pod in pods(render(values)).items():
        added = {} if name == "frontend" else locks
        context = main_container(pod)["securityContext"]
        assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], **added}}
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        shared = {process.name for process in deployment.processes if process.node_cache}
        of_host = [volume["name"] for volume in pod["volumes"] if "hostPath" in volume]
        assert of_host == (["node"] if name in shared else [])


def test_memory_is_limited_and_the_shared_part_is_within(render: Render, values: Manifest) -> None:
    for component in components(render(values)).values():
        resources = main_container(component["podTemplate"]["spec"])["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"]
        shared = int(component["sharedMemorySize"].removesuffix("Mi"))
        assert shared < int(resources["limits"]["memory"].removesuffix("Mi"))


def test_caches_are_on_the_disk_of_the_node(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    rendered = pods(render(values))
    for process in deployment.processes:
        pod = rendered[process.name]
        [volume] = [volume for volume in pod["volumes"] if volume["name"] == "cache"]
        assert volume["emptyDir"] == {"sizeLimit": f"{process.resources.ephemeral_storage_mib}Mi"}
        [mount] = [mount for mount in main_container(pod)["volumeMounts"] if mount["name"] == "cache"]
        assert all(f"{path}/".startswith(f"{mount['mountPath']}/") for path in CACHES.values())


def test_a_secret_comes_from_secrets_manager_by_reference(
    render: Render, values: Manifest, deployment: DeploymentPlan
) -> None:
    manifests = render(with_secret(values))
    pod = pods(manifests)[deployment.workers[0].name]
    [provider] = of_kind(manifests, "SecretProviderClass")
    [requested] = yaml.safe_load(provider["spec"]["parameters"]["objects"])
    assert requested == {"objectName": HUB_ARN, "objectAlias": "HF_TOKEN", "objectType": "secretsmanager"}
    [target] = provider["spec"]["secretObjects"]
    container = main_container(pod)
    [entry] = [entry for entry in container["env"] if entry["name"] == "HF_TOKEN"]
    assert entry["valueFrom"] == {"secretKeyRef": {"name": target["secretName"], "key": "HF_TOKEN"}}
    [volume] = [each for each in pod["volumes"] if each["name"] == "secrets"]
    assert volume["csi"]["volumeAttributes"] == {"secretProviderClass": provider["metadata"]["name"]}
    # The program that downloads mounts it, if there is one.
    mounting = [container, *(each for each in pod.get("initContainers", []) if each["name"] == "node-cache")]
    assert "secrets" in {mount["name"] for each in mounting for mount in each["volumeMounts"]}
    assert of_kind(manifests, "Secret") == []


def test_two_releases_in_one_namespace_share_no_object(render: Render, values: Manifest) -> None:
    def names(release: str) -> set[tuple[str, str]]:
        manifests = render(with_secret(values), release)
        return {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}

    assert not names("qwen3-8b-main") & names("qwen3-8b-other")


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(replicas=3),
        lambda values: values["processes"][0].update(nodeSelector={}),
        lambda values: values["processes"][0]["resources"].update(memory="2Gi"),
        lambda values: values["processes"][0].update(replicas="2"),
        lambda values: values["processes"][0].update(replicas=0),
        lambda values: values["processes"][0]["rollout"].update(maxUnavailable=0),
        lambda values: values["processes"][0].pop("image"),
        lambda values: values["processes"][0].update(image="registry.example/worker"),
        lambda values: values["processes"][0]["probes"].pop("readiness"),
        lambda values: values["processes"][0]["environment"].append(
            {"name": "A", "value": "1", "secret": "A"}
        ),
        lambda values: values["processes"][0]["environment"].append({"name": "A", "value": 1}),
        lambda values: values["processes"][0]["arguments"].append(8000),
        lambda values: values.update(framework="other"),
        lambda values: values.pop("processes"),
    ],
)
def test_values_that_the_schema_does_not_know_are_refused(
    change: Callable[[Manifest], object], run_helm: RunHelm, values: Manifest, staged: Staged
) -> None:
    change(values)
    result = run_helm("template", "release", staged("dynamo-model"), values=values)
    assert result.returncode != 0
    assert "values don't meet the specifications of the schema" in result.stderr


def test_the_charts_file_names_the_charts_own_version() -> None:
    document = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    chart = charts()["dynamo-model"]
    assert chart.version == document["version"]
    assert document["kubeVersion"] == f">={chart.minimum_kubernetes}.0-0"


def test_an_older_cluster_is_refused(run_helm: RunHelm, values: Manifest, staged: Staged) -> None:
    result = run_helm("template", "release", staged("dynamo-model"), "--kube-version", "1.29", values=values)
    assert "incompatible with Kubernetes" in result.stderr
