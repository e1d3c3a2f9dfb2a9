"""The pods of the front door: in which order they start and end, how they drain, and what they may do."""

from __future__ import annotations

import copy

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_catalog import node_facts
from inference_contracts.door_names import DOOR_PORT, METRICS_PORT
from inference_contracts.door_settings import read_settings
from inference_contracts.metric_labels import PROMETHEUS_NAMESPACE
from tests.charts.front_door import BOTH, CHART, CONTAINERS, FIXED, PLAN, RELEASE, SCALED
from tests.charts.llm_d import of_kind
from tests.charts.renderings import Manifest, Render, Staged, run_helm


@pytest.fixture
def rendered(render: Render) -> list[Manifest]:
    return render(FIXED, RELEASE, CHART)


@pytest.fixture
def pod(rendered: list[Manifest]) -> Manifest:
    [deployment] = of_kind(rendered, "Deployment")
    spec: Manifest = deployment["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("which", sorted(BOTH))
def test_helm_finds_nothing_to_complain_of(which: str, staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged(CHART), values=BOTH[which])
    assert result.returncode == 0, result.stdout


def test_the_policy_starts_before_envoy_and_ends_after_it(pod: Manifest) -> None:
    """Red if Envoy starts without the files that it watches, or if its last lines are never settled."""
    [envoy] = pod["containers"]
    assert envoy["command"][0] == "envoy"
    sidecars = {each["name"]: each for each in pod["initContainers"]}
    assert (*sidecars, envoy["name"]) == CONTAINERS
    for each in sidecars.values():
        assert each["restartPolicy"] == "Always"
        assert "startupProbe" in each


def test_streams_get_the_hour_that_the_load_balancer_gives_them(pod: Manifest) -> None:
    """Red if Envoy gets SIGTERM, on which it ends at once, while it has requests."""
    [envoy] = pod["containers"]
    drain = envoy["lifecycle"]["preStop"]["exec"]["command"]
    assert drain[:3] == ["python3", "-m", "front_door.drain"]
    assert int(drain[-1]) == 3600
    assert pod["terminationGracePeriodSeconds"] >= int(drain[-1]) + 60


def test_the_settings_are_those_that_the_policy_reads(pod: Manifest) -> None:
    """Red if a variable is missing, misspelled, or has a value that the policy process refuses."""
    [policy] = [each for each in pod["initContainers"] if each["name"] == "policy"]
    variables = {each["name"]: each.get("value", "pod-name") for each in policy["env"]}
    settings = read_settings(variables)
    assert settings.replica == "pod-name"
    mounted = {each["mountPath"] for each in policy["volumeMounts"]}
    for path in (settings.envoy_folder, settings.state_folder, settings.access_log, settings.socket):
        assert any(path == each or path.startswith(f"{each}/") for each in mounted), path


def test_the_key_of_reservations_is_for_the_policy_alone(pod: Manifest) -> None:
    holders = [
        each["name"]
        for each in (*pod["initContainers"], *pod["containers"])
        if any(mount["name"] == "state" for mount in each["volumeMounts"])
    ]
    assert holders == ["policy"]


def test_pods_hold_no_right_of_the_cluster_and_keep_off_accelerators(pod: Manifest) -> None:
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    for each in (*pod["initContainers"], *pod["containers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    [term] = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert {"key": node_facts.POOL_LABEL, "operator": "DoesNotExist"} in term["matchExpressions"]


def test_each_entry_point_has_a_name_with_the_address_of_each_pod(
    rendered: list[Manifest], render: Render
) -> None:
    """Red if Envoy would find no pod, a worker, or one virtual address for all."""
    services = {
        each["metadata"]["name"]: each
        for each in of_kind(rendered, "Service")
        if each["metadata"]["name"] != RELEASE
    }
    assert PLAN.front_door is not None
    assert services.keys() == {f"{each.name}-door" for each in PLAN.front_door.clusters}
    for cluster in PLAN.front_door.clusters:
        service = services[f"{cluster.name}-door"]
        assert service["spec"]["clusterIP"] == "None"
        assert "publishNotReadyAddresses" not in service["spec"]
        [deployment] = [
            each for each in PLAN.model(cluster.model).deployments if each.name == cluster.deployment
        ]
        values = deployment_values(
            deployment, certificate_arn="arn:aws:secretsmanager:us-west-2:111122223333:secret:a"
        )
        [graph] = of_kind(render(values, deployment.release, deployment.chart), "DynamoGraphDeployment")
        matching = [
            component["type"]
            for component in graph["spec"]["components"]
            if service["spec"]["selector"].items() <= component["podTemplate"]["metadata"]["labels"].items()
        ]
        assert matching == ["frontend"]


def test_at_most_one_replica_is_missing(rendered: list[Manifest]) -> None:
    [deployment] = of_kind(rendered, "Deployment")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    [budget] = of_kind(rendered, "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_only_the_port_of_the_api_admits_others(rendered: list[Manifest]) -> None:
    [policy] = of_kind(rendered, "NetworkPolicy")
    everybody, prometheus = policy["spec"]["ingress"]
    assert everybody == {"ports": [{"port": DOOR_PORT, "protocol": "TCP"}]}
    assert prometheus["ports"] == [{"port": METRICS_PORT, "protocol": "TCP"}]
    [reader] = prometheus["from"]
    names = reader["namespaceSelector"]["matchLabels"]
    assert names == {"kubernetes.io/metadata.name": PROMETHEUS_NAMESPACE}


def test_only_the_autoscaler_says_how_many_replicas_there_are(render: Render) -> None:
    scaled = render(SCALED, RELEASE, CHART)
    [deployment] = of_kind(scaled, "Deployment")
    assert "replicas" not in deployment["spec"]
    [scaler] = of_kind(scaled, "HorizontalPodAutoscaler")
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (3, 6)
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    fixed = render(FIXED, RELEASE, CHART)
    assert of_kind(fixed, "HorizontalPodAutoscaler") == []
    [deployment] = of_kind(fixed, "Deployment")
    assert deployment["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicas": 0}, "replicas"),
        ({"scaling": SCALED["scaling"]}, "oneOf"),
        ({"image": ""}, "image"),
        ({"architecture": "riscv"}, "architecture"),
        ({"other": 1}, "other"),
    ],
)
def test_values_that_mean_nothing_are_refused(change: Manifest, words: str, staged: Staged) -> None:
    values = {**copy.deepcopy(FIXED), **change}
    result = run_helm("template", RELEASE, staged(CHART), values=values)
    assert result.returncode != 0
    assert words in result.stderr
