"""The chart of llm-d: what its processes are given, and that nothing of it meets Dynamo's."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

import pytest
import yaml

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan, OwnAddress
from inference_catalog import node_facts
from inference_catalog.charts import charts, charts_directory
from tests.charts.llm_d import (
    APART,
    BUCKET,
    CHART,
    DEPLOYMENTS,
    HUB_ARN,
    MIRRORED,
    ROUTER,
    argument,
    deployments,
    groups,
    main_container,
    of_kind,
    planned,
    pod,
    sidecars,
)
from tests.charts.renderings import Manifest, Render, Staged, run_helm


@pytest.fixture
def deployment(llm_d_deployment: DeploymentPlan) -> DeploymentPlan:
    return llm_d_deployment


@pytest.fixture
def values(llm_d_values: Manifest) -> Manifest:
    return llm_d_values


def test_helm_finds_nothing_to_complain_of(values: Manifest, staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged(CHART), values=values)
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


def test_programs_are_given_what_the_plan_says(rendered: list[Manifest], deployment: DeploymentPlan) -> None:
    assert deployments(rendered).keys() == {process.name for process in deployment.processes}
    for process in deployment.processes:
        spec = deployments(rendered)[process.name]
        container = main_container(spec["template"]["spec"])
        assert spec["replicas"] == process.replicas
        assert (container["image"], container["command"]) == (process.image, list(process.command))
        assert container["args"] == list(process.arguments)
        found = {each["name"]: each for each in container.get("env", [])}
        for variable, value in process.environment.items():
            if isinstance(value, str):
                assert found[variable]["value"] == value
            if isinstance(value, OwnAddress):
                assert found[variable]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert ports == {port.name: port.number for port in process.ports}


def test_values_in_arguments_are_variables_that_the_pod_has(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    for process in deployment.workers:
        container = main_container(pod(rendered, process.name))
        used = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
        # Those of groups come from LeaderWorkerSet (``pkg/utils/pod`` of sigs.k8s.io/lws).
        of_groups = {"LWS_LEADER_ADDRESS"} if process.nodes > 1 else set()
        assert used - of_groups <= {each["name"] for each in container["env"]}


def test_the_model_is_the_first_word_and_switches_have_no_value(deployment: DeploymentPlan) -> None:
    for process in deployment.workers:
        assert process.command == ("vllm", "serve")
        assert not process.arguments[0].startswith("-")
        assert "--model" not in process.arguments
        assert "--disaggregation-mode" not in process.arguments
        assert not {"true", "false", "True", "False"} & set(process.arguments)


def test_roles_are_labelled_as_the_filters_read_them(rendered: list[Manifest]) -> None:
    labels = {
        process: spec["template"]["metadata"]["labels"].get("llm-d.ai/role")
        for process, spec in deployments(rendered).items()
    }
    expected = {"worker": "prefill-decode", "prefill": "prefill", "decode": "decode", ROUTER: None}
    assert labels == {process: expected[process] for process in labels}


def test_a_decode_worker_is_behind_its_sidecar_and_no_other_is(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    for process in deployment.workers:
        beside = {
            name: each for name, each in sidecars(pod(rendered, process.name)).items() if name != "node-cache"
        }
        if process.role != "decode":
            assert beside == {}
            assert argument(process, "--port") == "8000"
            continue
        (sidecar,) = beside.values()
        assert {"--port=8000", "--kv-connector=nixlv2", "--secure-proxy=false"} <= set(sidecar["args"])
        assert [each["containerPort"] for each in sidecar["ports"]] == [8000]
        # The sidecar's own default for the server behind it.
        assert argument(process, "--port") == "8200"


def test_streams_end_before_their_pod_does(rendered: list[Manifest], deployment: DeploymentPlan) -> None:
    for process in deployment.processes:
        spec = pod(rendered, process.name)
        container = main_container(spec)
        waits = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert (waits, spec["terminationGracePeriodSeconds"]) == (
            process.pre_stop_seconds,
            process.termination_grace_seconds,
        )
        drained = waits
        if process.is_worker:
            drained += int(argument(process, "--shutdown-timeout"))
        assert 30 <= drained < spec["terminationGracePeriodSeconds"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] in {each["name"] for each in container["ports"]}


def test_kv_transfer_recomputes_what_it_lost_and_names_its_pod(deployment: DeploymentPlan) -> None:
    for process in deployment.workers:
        if deployment.kv_transfer is None:
            assert "--kv-transfer-config" not in process.arguments
            continue
        transfer = yaml.safe_load(argument(process, "--kv-transfer-config"))
        assert transfer["kv_load_failure_policy"] == "recompute"
        assert process.environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] == OwnAddress()
        assert process.environment["VLLM_NIXL_SIDE_CHANNEL_PORT"] == "5600"
        backends = transfer.get("kv_connector_extra_config", {}).get("backends")
        assert backends == (["LIBFABRIC"] if deployment.kv_transfer == "libfabric" else None)
        assert (process.resources.efa_interfaces > 0) == (deployment.kv_transfer == "libfabric")


def test_pods_have_no_privilege_but_to_lock_memory_for_rdma(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    for process in deployment.processes:
        spec = pod(rendered, process.name)
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        of_host = [volume["name"] for volume in spec["volumes"] if "hostPath" in volume]
        assert of_host == (["node"] if process.node_cache else [])
        locks = process.is_worker and (deployment.kv_transfer == "libfabric" or process.nodes > 1)
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            capabilities = container["securityContext"]["capabilities"]
            added = ["IPC_LOCK"] if locks and container["name"] == "main" else []
            assert capabilities == ({"drop": ["ALL"], "add": added} if added else {"drop": ["ALL"]})
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
        if process.is_worker:
            expected = str(process.resources.efa_interfaces) if process.resources.efa_interfaces else None
            assert main_container(spec)["resources"]["limits"].get("vpc.amazonaws.com/efa") == expected


def test_the_nodes_of_a_worker_are_a_group_of_which_the_router_knows_the_first(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    spanning = {process.name: process for process in deployment.workers if process.nodes > 1}
    assert groups(rendered).keys() == spanning.keys()
    (pool,) = of_kind(rendered, "InferencePool")
    chosen = pool["spec"]["selector"]["matchLabels"].items()
    for name, spec in groups(rendered).items():
        template = spec["leaderWorkerTemplate"]
        assert (spec["replicas"], template["size"]) == (spanning[name].replicas, spanning[name].nodes)
        assert template["restartPolicy"] == "RecreateGroupOnPodRestart"
        leader, follower = template["leaderTemplate"], template["workerTemplate"]
        assert chosen <= leader["metadata"]["labels"].items()
        assert not chosen & follower["metadata"]["labels"].items()
        (first,), (further,) = leader["spec"]["containers"], follower["spec"]["containers"]
        assert first["args"][-2:] == ["--node-rank", "0"]
        assert further["args"] == [*first["args"][:-1], "$(LWS_WORKER_INDEX)", "--headless"]
        # A node without an API answers no health check, and takes as much of its node as the first.
        beside = {"args", "ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle"}
        assert further == {key: value for key, value in first.items() if key not in beside} | {
            "args": further["args"]
        }


def test_workers_have_the_identity_that_may_read_their_weights(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    for process in deployment.workers:
        assert pod(rendered, process.name)["serviceAccountName"] == deployment.service_account


def test_a_worker_and_its_sidecars_share_one_share_of_the_node(rendered: list[Manifest]) -> None:
    alone = DEPLOYMENTS["llm-d-precise"].workers[0].resources
    decode = DEPLOYMENTS["llm-d-disaggregated"].workers[1]
    whole = decode.resources.memory_mib + sum(each.memory_mib for each in decode.sidecars)
    # Four accelerators' share is twice that of two, of which each was rounded down to whole GiB.
    assert 0 <= whole - 2 * alone.memory_mib <= 1024
    for process, spec in deployments(rendered).items():
        resources = main_container(spec["template"]["spec"])["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"], process


def test_workers_go_to_their_pool_and_the_router_to_no_pool(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    for process in deployment.processes:
        spec = pod(rendered, process.name)
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = required["nodeSelectorTerms"]
        (rule,) = [each for each in term["matchExpressions"] if each["key"] == node_facts.POOL_LABEL]
        assert rule.get("values") == ([process.pool] if process.pool else None)
        wishes = (
            spec["affinity"].get("podAffinity", {}).get("preferredDuringSchedulingIgnoredDuringExecution", [])
        )
        assert [each["weight"] for each in wishes] == [each.weight for each in process.neighbours]


def test_a_budget_a_process_that_never_blocks_a_drain(rendered: list[Manifest]) -> None:
    budgets = of_kind(rendered, "PodDisruptionBudget")
    assert len(budgets) == len(deployments(rendered))
    for budget in budgets:
        labels = budget["spec"]["selector"]["matchLabels"]
        selected = [
            process
            for process, spec in deployments(rendered).items()
            if labels.items() <= spec["template"]["metadata"]["labels"].items()
        ]
        assert len(selected) == 1
        assert budget["spec"]["maxUnavailable"] >= 1
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_a_token_comes_from_secrets_manager_by_reference(render: Render) -> None:
    plan = DEPLOYMENTS["llm-d-approximate"]
    manifests = render(deployment_values(plan), plan.release, CHART)
    (provider,) = of_kind(manifests, "SecretProviderClass")
    (requested,) = yaml.safe_load(provider["spec"]["parameters"]["objects"])
    assert requested["objectName"] == HUB_ARN
    (target,) = provider["spec"]["secretObjects"]
    spec = pod(manifests, "prefill")
    (entry,) = [each for each in main_container(spec)["env"] if each["name"] == "HF_TOKEN"]
    assert entry["valueFrom"]["secretKeyRef"] == {"name": target["secretName"], "key": "HF_TOKEN"}
    assert "secrets" in {volume["name"] for volume in spec["volumes"]}
    assert "HF_TOKEN" not in {each["name"] for each in main_container(pod(manifests, ROUTER))["env"]}


def test_workers_of_a_mirrored_model_wait_for_it_and_stream_it(render: Render) -> None:
    plan = planned(MIRRORED, (APART[0], APART[1].replace("replicas: 4", "replicas: 1")))
    manifests = render(deployment_values(plan, weights_bucket=BUCKET), plan.release, CHART)
    spec = pod(manifests, "worker")
    assert [each["name"] for each in spec["initContainers"]] == ["node-folder", "node-cache", "weights"]
    container = main_container(spec)
    assert container["args"][0].startswith("s3://$(WEIGHTS_BUCKET)/")
    assert {"name": "WEIGHTS_BUCKET", "value": BUCKET} in container["env"]


def test_workers_that_share_a_node_load_its_copy_of_the_mirror(render: Render) -> None:
    plan = DEPLOYMENTS["llm-d-aggregated"]
    manifests = render(deployment_values(plan, weights_bucket=BUCKET), plan.release, CHART)
    spec = pod(manifests, "worker")
    assert [each["name"] for each in spec["initContainers"]] == ["node-folder", "node-cache"]
    assert main_container(spec)["args"][0].startswith("/models/")
    assert {"name": "WEIGHTS_BUCKET", "value": BUCKET} in sidecars(spec)["node-cache"]["env"]


def test_no_object_is_called_like_one_of_dynamo(render: Render) -> None:
    """A release may change its stack: Helm refuses what another has made, and the operator is slower."""
    plan = DEPLOYMENTS["llm-d-disaggregated"]
    release = plan.release
    of_operator = {f"{release}-{component}" for component in ("frontend", "worker", "prefill", "decode")}
    of_operator |= {release, f"{release}-k8s-service-discovery"}
    manifests = render(deployment_values(plan, weights_bucket=BUCKET), release, CHART)
    made_by_both = {"Deployment", "Service", "ServiceAccount", "Role", "RoleBinding", "ConfigMap"}
    names = {each["metadata"]["name"] for each in manifests if each["kind"] in made_by_both}
    assert not names & of_operator


def test_two_releases_in_one_namespace_share_no_object(render: Render, values: Manifest) -> None:
    def names(release: str) -> set[tuple[str, str]]:
        changed = copy.deepcopy(values) | {"serviceAccount": f"{release}-vllm"}
        return {(each["kind"], each["metadata"]["name"]) for each in render(changed, release, CHART)}

    assert not names("qwen3-8b-main") & names("qwen3-8b-other")


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(replicas=3),
        lambda values: values["picker"].update(prefixScorer="exact"),
        lambda values: values["picker"].pop("blockSize"),
        lambda values: values["picker"].update(prefixScorer="precise", renderProcess=""),
        lambda values: values.update(serviceAccount="Workers"),
        lambda values: values["processes"][0]["sidecars"][0].pop("image"),
        lambda values: values["processes"][0]["sidecars"][0].update(image="registry.example/picker"),
        lambda values: values["processes"][0].update(preStopSeconds=0),
        lambda values: values["processes"][1].update(replicas="2"),
        lambda values: values["processes"][1]["resources"].update(memory="2Gi"),
        lambda values: values["processes"][1]["probes"].pop("startup"),
    ],
)
def test_values_that_the_schema_does_not_know_are_refused(
    change: Callable[[Manifest], object], staged: Staged
) -> None:
    values = deployment_values(DEPLOYMENTS["llm-d-disaggregated"], weights_bucket=BUCKET)
    change(values)
    result = run_helm("template", "release", staged(CHART), values=values)
    assert result.returncode != 0
    assert "values don't meet the specifications of the schema" in result.stderr


@pytest.mark.parametrize("chart", ["llm-d-model", "inference-pool-crd"])
def test_the_charts_file_names_the_charts_own_version(chart: str) -> None:
    document = yaml.safe_load((charts_directory() / chart / "Chart.yaml").read_text(encoding="utf-8"))
    entry = charts()[chart]
    assert entry.version == document["version"]
    assert document["kubeVersion"] == f">={entry.minimum_kubernetes}.0-0"
