"""The router of llm-d: how it finds workers, what it chooses by, and whom it lets say where requests go."""

from __future__ import annotations

import copy

import pytest
import yaml

from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.serving.types import DeploymentPlan
from inference_catalog.charts import charts_directory
from inference_local.manifests import validate_manifest
from tests.charts.llm_d import (
    CHART,
    ROUTER,
    argument,
    configuration,
    deployments,
    main_container,
    of_kind,
    pod,
    sidecars,
)
from tests.charts.renderings import KUBERNETES_VERSION, Manifest, Render, run_helm


@pytest.fixture
def deployment(llm_d_deployment: DeploymentPlan) -> DeploymentPlan:
    return llm_d_deployment


@pytest.fixture
def values(llm_d_values: Manifest) -> Manifest:
    return llm_d_values


def test_the_pool_selects_every_worker_and_nothing_else(rendered: list[Manifest]) -> None:
    (inference_pool,) = of_kind(rendered, "InferencePool")
    selector = inference_pool["spec"]["selector"]["matchLabels"]
    (target,) = inference_pool["spec"]["targetPorts"]
    for process, spec in deployments(rendered).items():
        labels = spec["template"]["metadata"]["labels"]
        assert (selector.items() <= labels.items()) == (process != ROUTER)
        if process != ROUTER:
            programs = [
                main_container(spec["template"]["spec"]),
                *sidecars(spec["template"]["spec"]).values(),
            ]
            listening = [port["containerPort"] for each in programs for port in each.get("ports", [])]
            assert listening.count(target["number"]) == 1


def test_the_pool_names_a_port_of_the_picker(rendered: list[Manifest]) -> None:
    (inference_pool,) = of_kind(rendered, "InferencePool")
    reference = inference_pool["spec"]["endpointPickerRef"]
    (service,) = [
        each for each in of_kind(rendered, "Service") if each["metadata"]["name"] == reference["name"]
    ]
    (port,) = [each for each in service["spec"]["ports"] if each["port"] == reference["port"]["number"]]
    picker = sidecars(pod(rendered, ROUTER))["picker"]
    assert port["targetPort"] in {each["name"] for each in picker["ports"]}
    assert reference["failureMode"] == "FailClose"


def test_the_picker_is_told_of_the_pool_by_its_name(rendered: list[Manifest]) -> None:
    (inference_pool,) = of_kind(rendered, "InferencePool")
    words = sidecars(pod(rendered, ROUTER))["picker"]["args"]
    assert f"--pool-name={inference_pool['metadata']['name']}" in words
    assert "--pool-namespace=inference" in words


def test_every_plugin_that_is_referred_to_is_declared(rendered: list[Manifest]) -> None:
    document = configuration(rendered, "picker.yaml")
    declared = [each.get("name", each["type"]) for each in document["plugins"]]
    assert len(declared) == len(set(declared))
    referred = {
        each["pluginRef"] for profile in document["schedulingProfiles"] for each in profile["plugins"]
    }
    for source in document["dataLayer"]["sources"]:
        referred |= {source["pluginRef"], *(each["pluginRef"] for each in source["extractors"])}
    for plugin in document["plugins"]:
        parameters = plugin.get("parameters", {})
        referred |= set(parameters.get("deciders", {}).values())
        referred |= {parameters[key] for key in ("prefixMatchInfoProducerName",) if key in parameters}
    assert referred <= set(declared)


def test_profiles_are_those_of_the_topology(rendered: list[Manifest], deployment: DeploymentPlan) -> None:
    document = configuration(rendered, "picker.yaml")
    profiles = {
        each["name"]: [plugin["pluginRef"] for plugin in each["plugins"]]
        for each in document["schedulingProfiles"]
    }
    types = {each["type"] for each in document["plugins"]}
    if deployment.kv_transfer:
        assert profiles.keys() == {"prefill", "decode"}
        for role, plugins in profiles.items():
            assert plugins == [f"{role}-filter", "prefix-cache-scorer", "queue-scorer", "max-score-picker"]
        # The decider reads what this producer knows, whatever the scorer reads.
        assert {"disagg-profile-handler", "prefix-based-pd-decider", "approx-prefix-cache-producer"} <= types
    else:
        assert profiles.keys() == {"default"}
        assert "single-profile-handler" in types
        assert "disagg-profile-handler" not in types


def test_the_precise_scorer_is_fed_by_the_workers(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    plugins = {
        each["type"]: each.get("parameters", {}) for each in configuration(rendered, "picker.yaml")["plugins"]
    }
    picker = deployment.picker
    assert picker is not None
    renders = [each for each in of_kind(rendered, "Service") if each["metadata"]["name"].endswith("-render")]
    if picker.prefix_scorer == "approximate":
        assert renders == []
        assert "precise-prefix-cache-producer" not in plugins
        assert all("--kv-events-config" not in process.arguments for process in deployment.workers)
        return
    precise = plugins["precise-prefix-cache-producer"]
    assert precise["tokenProcessorConfig"]["blockSizeTokens"] == picker.block_size
    for process in deployment.workers:
        events = yaml.safe_load(argument(process, "--kv-events-config"))
        assert (
            events["endpoint"] == f"tcp://*:{precise['kvEventsConfig']['podDiscoveryConfig']['socketPort']}"
        )
        assert events["topic"].startswith(precise["kvEventsConfig"]["topicFilter"])
        assert events["topic"].endswith(f"@{deployment.model}")
        assert argument(process, "--block-size") == str(picker.block_size)
    (service,) = renders
    address = f"http://{service['metadata']['name']}.inference.svc:{service['spec']['ports'][0]['port']}"
    assert plugins["token-producer"] == {"modelName": deployment.model, "vllm": {"url": address}}
    (rendering,) = [process for process in deployment.workers if "--enable-scale-out" in process.arguments]
    assert service["spec"]["selector"]["app.kubernetes.io/component"] == rendering.name
    assert rendering.role != "decode", "its sidecar knows nothing of these paths"


def test_the_proxy_listens_behind_the_filter_and_asks_the_picker(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    envoy = configuration(rendered, "envoy.yaml")["static_resources"]
    (listener,) = envoy["listeners"]
    (behind,) = next(each.ports for each in deployment.entry_point.sidecars if each.name == "envoy")
    # Only the filter reaches it, which is what the Service and the probes ask.
    assert listener["address"]["socket_address"] == {"address": "127.0.0.1", "port_value": behind.number}
    router = pod(rendered, ROUTER)
    assert main_container(router)["args"][-2:] == ["--behind", str(behind.number)]
    assert [each["name"] for each in main_container(router)["ports"]] == ["http"]
    # It starts before the filter and ends after it; no probe of the node reaches the loopback address.
    assert list(sidecars(router)) == ["picker", "envoy"]
    assert not {"ports", "readinessProbe", "livenessProbe"} & sidecars(router)["envoy"].keys()
    (chain,) = listener["filter_chains"]
    manager = chain["filters"][0]["typed_config"]
    filters = [each["name"].removeprefix("envoy.filters.http.") for each in manager["http_filters"]]
    assert filters == ["health_check", "header_mutation", "ext_proc", "router"]
    typed = {each["name"].rpartition(".")[2]: each["typed_config"] for each in manager["http_filters"]}
    (header,) = typed["health_check"]["headers"]
    assert header["string_match"]["exact"] == deployment.entry_point.probes.readiness.path
    assert typed["ext_proc"]["failure_mode_allow"] is False
    clusters = {each["name"]: each for each in envoy["clusters"]}
    assert typed["ext_proc"]["grpc_service"]["envoy_grpc"]["cluster_name"] in clusters
    route, others = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert route["match"] == {"prefix": "/v1/"}
    assert others["direct_response"] == {"status": 404}
    picked = clusters[route["route"]["cluster"]]["original_dst_lb_config"]
    removed = {each["remove"] for each in typed["header_mutation"]["mutations"]["request_mutations"]}
    # What a caller may not say: where the request goes, and from where its KV cache is fetched.
    assert {picked["http_header_name"], "x-prefiller-host-port", "x-kv-cache-source-host-port"} <= removed


def test_only_the_router_may_ask_kubernetes_and_only_to_read(rendered: list[Manifest]) -> None:
    (role,) = of_kind(rendered, "Role")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {
        "pods",
        "inferencepools",
        "inferenceobjectives",
        "inferencemodelrewrites",
    }
    assert not {"ClusterRole", "ClusterRoleBinding"} & {each["kind"] for each in rendered}
    (binding,) = of_kind(rendered, "RoleBinding")
    accounts = {each["metadata"]["name"] for each in of_kind(rendered, "ServiceAccount")}
    for process, spec in deployments(rendered).items():
        template = spec["template"]["spec"]
        assert template["serviceAccountName"] in accounts
        assert template["automountServiceAccountToken"] is (process == ROUTER)
    assert [each["name"] for each in binding["subjects"]] == [pod(rendered, ROUTER)["serviceAccountName"]]


def test_a_router_never_waits_for_the_one_that_it_replaces(rendered: list[Manifest]) -> None:
    update = deployments(rendered)[ROUTER]["strategy"]["rollingUpdate"]
    assert update == {"maxSurge": 1, "maxUnavailable": 0}


def test_a_changed_configuration_restarts_the_router(render: Render, values: Manifest) -> None:
    def checksum(changed: Manifest) -> str:
        template = deployments(render(changed, "release", CHART))[ROUTER]["template"]
        return str(template["metadata"]["annotations"]["checksum/configuration"])

    changed = copy.deepcopy(values)
    changed["processes"][0]["terminationGraceSeconds"] += 1
    assert checksum(values) != checksum(changed)


def test_the_definition_stays_when_its_release_goes(render: Render) -> None:
    values = chart_values("inference-pool-crd")
    (definition,) = render(values, "inference-pool-crd", "inference-pool-crd")
    assert validate_manifest(definition, KUBERNETES_VERSION) == []
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert definition["spec"]["names"]["kind"] == "InferencePool"
    linted = run_helm("lint", "--strict", str(charts_directory() / "inference-pool-crd"), values=values)
    assert linted.returncode == 0, linted.stdout
