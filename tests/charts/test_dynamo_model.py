from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, FilePath, OwnAddress, WeightsBucket
from inference_blueprints.spec.types import Blueprint
from inference_catalog.charts import charts, charts_directory
from inference_local.manifests import validate_manifest
from tests.charts.dynamo import (
    CHART,
    DEPLOYMENTS,
    UNLIKE,
    components,
    main_container,
    pods,
    shipped_deployments,
    with_secret,
)
from tests.charts.llm_d import BUCKET, HUB_ARN, of_kind
from tests.charts.renderings import KUBERNETES_VERSION, Manifest, Render, Staged, run_helm

CACHES = {"XDG_CACHE_HOME": "/cache", "HF_HOME": "/cache/huggingface"}


@pytest.fixture
def with_token(render: Render, values: Manifest, deployment: DeploymentPlan) -> list[Manifest]:
    """Return the deployment's objects with a token as a secret."""
    return render(with_secret(values), deployment.release)


def test_helm_finds_nothing_to_complain_of(values: Manifest, staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged(CHART), values=values)
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


def _kinds(deployment: DeploymentPlan) -> Iterator[tuple[str, object]]:
    """Yield what the chart renders in different ways."""
    for process in deployment.processes:
        yield "role", process.role
        yield "KV transfer", deployment.kv_transfer
        yield "on several nodes", process.nodes > 1
        yield "scaled", process.scaling is not None
        yield "copy of its node", process.node_cache is not None
        yield "in one zone", process.zone is not None
        yield "beside others", bool(process.neighbours)
        yield "taint of its pool", len(process.tolerations) > 1
        yield from (("variable", type(value)) for value in process.environment.values())


def test_the_deployments_that_are_tested_have_every_kind_of_process() -> None:
    """Else a shipped deployment renders what no test here looks at."""
    tested = {kind for name in UNLIKE for kind in _kinds(DEPLOYMENTS[name])}
    assert tested == {kind for each in DEPLOYMENTS.values() for kind in _kinds(each)}


def test_every_shipped_deployment_has_a_rendering_of_its_own() -> None:
    """Two of one name would be one file, and one of them would not be reviewed."""
    assert len(DEPLOYMENTS) == len([each for each in shipped_deployments() if each.chart == CHART])


def test_every_object_with_a_secret_is_valid(with_token: list[Manifest]) -> None:
    for manifest in with_token:
        assert validate_manifest(manifest, KUBERNETES_VERSION) == []
    for name, component in components(with_token).items():
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}}
        assert validate_manifest({**template, "template": component["podTemplate"]}, KUBERNETES_VERSION) == []


def test_programs_are_given_what_the_plan_says(manifests: list[Manifest], deployment: DeploymentPlan) -> None:
    rendered = components(manifests)
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


def test_switches_have_no_value(manifests: list[Manifest]) -> None:
    for pod in pods(manifests).values():
        assert not {"true", "false", "True", "False"} & set(main_container(pod)["args"])


def test_images_are_pinned(manifests: list[Manifest]) -> None:
    for pod in pods(manifests).values():
        tag = main_container(pod)["image"].partition("@")[0].rpartition(":")[2]
        assert tag[0].isdigit(), "the operator reads the release from the tag"


def test_every_check_and_the_drain_are_there(manifests: list[Manifest], deployment: DeploymentPlan) -> None:
    rendered = pods(manifests)
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


def test_a_disruption_budget_selects_its_pods_and_never_blocks_a_drain(manifests: list[Manifest]) -> None:
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
    manifests: list[Manifest], deployment: DeploymentPlan
) -> None:
    rendered = components(manifests)
    for process in deployment.processes:
        annotations = rendered[process.name]["podTemplate"]["metadata"]["annotations"]
        prefix = "nvidia.com/deployment-rolling-update-max"
        spanning = {"nvidia.com/vllm-distributed-executor-backend": "mp"} if process.nodes > 1 else {}
        assert annotations == spanning | {
            f"{prefix}-surge": str(process.rollout.max_surge),
            f"{prefix}-unavailable": str(process.rollout.max_unavailable),
        }


def test_the_operator_is_told_of_the_nodes_of_a_worker_and_to_use_grove_for_them_alone(
    manifests: list[Manifest], deployment: DeploymentPlan
) -> None:
    (graph,) = (each for each in manifests if each["kind"] == "DynamoGraphDeployment")
    nodes = {process.name: process.nodes for process in deployment.processes if process.nodes > 1}
    assert graph["metadata"]["annotations"] == {"nvidia.com/enable-grove": str(bool(nodes)).lower()}
    assert {
        name: component["multinode"]["nodeCount"]
        for name, component in components(manifests).items()
        if "multinode" in component
    } == nodes


def test_pods_have_no_privilege_but_to_lock_memory_for_rdma(
    manifests: list[Manifest], deployment: DeploymentPlan
) -> None:
    spans = any(process.nodes > 1 for process in deployment.processes)
    locks = {"add": ["IPC_LOCK"]} if deployment.kv_transfer == "libfabric" or spans else {}
    for name, pod in pods(manifests).items():
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


def test_memory_is_limited_and_the_shared_part_is_within(manifests: list[Manifest]) -> None:
    for component in components(manifests).values():
        resources = main_container(component["podTemplate"]["spec"])["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"]
        shared = int(component["sharedMemorySize"].removesuffix("Mi"))
        assert shared < int(resources["limits"]["memory"].removesuffix("Mi"))


def test_caches_are_on_the_disk_of_the_node(manifests: list[Manifest], deployment: DeploymentPlan) -> None:
    rendered = pods(manifests)
    for process in deployment.processes:
        pod = rendered[process.name]
        [volume] = [volume for volume in pod["volumes"] if volume["name"] == "cache"]
        assert volume["emptyDir"] == {"sizeLimit": f"{process.resources.ephemeral_storage_mib}Mi"}
        [mount] = [mount for mount in main_container(pod)["volumeMounts"] if mount["name"] == "cache"]
        assert all(f"{path}/".startswith(f"{mount['mountPath']}/") for path in CACHES.values())


def test_a_secret_comes_from_secrets_manager_by_reference(
    with_token: list[Manifest], deployment: DeploymentPlan
) -> None:
    pod = pods(with_token)[deployment.workers[0].name]
    [provider] = of_kind(with_token, "SecretProviderClass")
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
    assert of_kind(with_token, "Secret") == []


def test_two_releases_in_one_namespace_share_no_object(
    render: Render, values: Manifest, with_token: list[Manifest]
) -> None:
    def names(manifests: list[Manifest]) -> set[tuple[str, str]]:
        return {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}

    assert not names(with_token) & names(render(with_secret(values), "qwen3-8b-other"))


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(replicas=3),
        lambda values: values["processes"][0].update(nodeSelector={}),
        lambda values: values["processes"][0]["resources"].update(memory="2Gi"),
        lambda values: values["processes"][0].update(replicas="2"),
        lambda values: values["processes"][0].update(replicas=-1),
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
    change: Callable[[Manifest], object], staged: Staged
) -> None:
    values = deployment_values(DEPLOYMENTS["qwen3-8b-main"])
    change(values)
    result = run_helm("template", "release", staged(CHART), values=values)
    assert result.returncode != 0
    assert "values don't meet the specifications of the schema" in result.stderr


def test_the_charts_file_names_the_charts_own_version() -> None:
    document = yaml.safe_load((charts_directory() / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    chart = charts()[CHART]
    assert chart.version == document["version"]
    assert document["kubeVersion"] == f">={chart.minimum_kubernetes}.0-0"


def test_an_older_cluster_is_refused(staged: Staged) -> None:
    values = deployment_values(DEPLOYMENTS["qwen3-8b-main"])
    result = run_helm("template", "release", staged(CHART), "--kube-version", "1.29", values=values)
    assert "incompatible with Kubernetes" in result.stderr
