"""The chart of engines' own servers: what they are given, and how they leave the load balancer."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import yaml

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan
from inference_catalog.charts import charts, charts_directory
from tests.charts.direct import CHART, DEPLOYMENTS
from tests.charts.llm_d import BUCKET, deployments, main_container, of_kind, pod, sidecars
from tests.charts.renderings import Manifest, Render, Staged, run_helm


@pytest.fixture(params=DEPLOYMENTS)
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of each deployment in turn."""
    return str(request.param)


@pytest.fixture
def deployment(name: str) -> DeploymentPlan:
    return DEPLOYMENTS[name]


@pytest.fixture
def values(deployment: DeploymentPlan) -> Manifest:
    return deployment_values(deployment, weights_bucket=BUCKET)


@pytest.fixture
def rendered(render: Render, values: Manifest, deployment: DeploymentPlan) -> list[Manifest]:
    """Return the objects of a deployment."""
    return render(values, deployment.release, CHART)


def test_helm_finds_nothing_to_complain_of(values: Manifest, staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged(CHART), values=values)
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


def test_a_server_is_given_what_the_plan_says(rendered: list[Manifest], deployment: DeploymentPlan) -> None:
    [process] = deployment.processes
    [spec] = deployments(rendered).values()
    container = main_container(spec["template"]["spec"])
    assert spec.get("replicas") == (None if process.scaling else process.replicas)
    assert (container["image"], container["command"]) == (process.image, list(process.command))
    assert container["args"] == list(process.arguments)
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}


def test_the_service_selects_the_servers_alone(rendered: list[Manifest], deployment: DeploymentPlan) -> None:
    [service] = of_kind(rendered, "Service")
    [spec] = deployments(rendered).values()
    labels = spec["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["metadata"]["name"] == f"{deployment.release}-{deployment.entry_point.name}"
    [port] = service["spec"]["ports"]
    [container_port] = main_container(spec["template"]["spec"])["ports"]
    assert (port["port"], port["targetPort"]) == (container_port["containerPort"], container_port["name"])


def test_answers_end_before_their_pod_does(rendered: list[Manifest], deployment: DeploymentPlan) -> None:
    spec = pod(rendered, "server")
    pause = main_container(spec)["lifecycle"]["preStop"]["sleep"]["seconds"]
    words = main_container(spec)["args"]
    # A server without this argument is stopped after its answers, and has none left to end.
    streams = int(words[words.index("--shutdown-timeout") + 1]) if "--shutdown-timeout" in words else 0
    assert pause >= 15, "the load balancer needs some seconds to stop sending requests"
    assert spec["terminationGracePeriodSeconds"] > pause + streams
    assert deployment.entry_point.termination_grace_seconds == spec["terminationGracePeriodSeconds"]


def test_pods_have_no_privilege(rendered: list[Manifest]) -> None:
    spec = pod(rendered, "server")
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["automountServiceAccountToken"] is False
    assert main_container(spec)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_servers_have_the_identity_that_may_read_their_weights(
    rendered: list[Manifest], deployment: DeploymentPlan
) -> None:
    [account] = of_kind(rendered, "ServiceAccount")
    assert account["metadata"]["name"] == deployment.service_account
    assert pod(rendered, "server")["serviceAccountName"] == deployment.service_account


def test_mirrored_weights_are_complete_before_a_server_reads_them(render: Render) -> None:
    plan = DEPLOYMENTS["direct-mirror"]
    spec = pod(render(deployment_values(plan, weights_bucket=BUCKET), plan.release, CHART), "server")
    wait = next(each for each in spec["initContainers"] if each["name"] == "weights")
    assert wait["command"] == ["python3", "-m", "weights.wait"]
    assert main_container(spec)["args"][0].startswith("s3://")


def test_servers_that_share_a_node_load_its_copy(render: Render) -> None:
    plan = DEPLOYMENTS["direct-shared"]
    spec = pod(render(deployment_values(plan), plan.release, CHART), "server")
    assert "node-cache" in sidecars(spec)
    assert main_container(spec)["args"][0].startswith("/models/")


def test_keda_scales_the_servers_by_their_own_metrics(render: Render) -> None:
    plan = DEPLOYMENTS["direct-elastic"]
    [scaled] = of_kind(render(deployment_values(plan), plan.release, CHART), "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": f"{plan.release}-server",
    }
    queries = [
        each["metadata"]["query"] for each in scaled["spec"]["triggers"] if each["type"] == "prometheus"
    ]
    assert queries
    assert all("vllm:num_requests_" in query for query in queries)


def test_no_object_is_called_like_one_of_another_stack(render: Render) -> None:
    """A release may change its stack: Helm refuses what another has made, and Dynamo's operator is slower."""
    plan = DEPLOYMENTS["direct-hub"]
    release = plan.release
    others = {"", "-frontend", "-worker", "-k8s-service-discovery", "-vllm", "-vllm-worker", "-router"}
    shared = {"Deployment", "Service", "ServiceAccount", "ConfigMap"}
    manifests = render(deployment_values(plan), release, CHART)
    names = {each["metadata"]["name"] for each in manifests if each["kind"] in shared}
    assert names
    assert not names & {f"{release}{end}" for end in others}


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(replicas=3),
        lambda values: values.update(serviceAccount="Workers"),
        lambda values: values["processes"].append(copy.deepcopy(values["processes"][0])),
        lambda values: values["processes"][0].update(preStopSeconds=0),
        lambda values: values["processes"][0].update(nodes=2),
        lambda values: values["processes"][0]["probes"].pop("startup"),
    ],
)
def test_values_that_the_schema_does_not_know_are_refused(
    change: Callable[[Manifest], object], staged: Staged
) -> None:
    values = deployment_values(DEPLOYMENTS["direct-hub"])
    change(values)
    result = run_helm("template", "release", staged(CHART), values=values)
    assert result.returncode != 0
    assert "values don't meet the specifications of the schema" in result.stderr


def test_the_charts_file_names_the_chart_s_own_version() -> None:
    document = yaml.safe_load((charts_directory() / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    entry = charts()[CHART]
    assert entry.version == document["version"]
    assert document["kubeVersion"] == f">={entry.minimum_kubernetes}.0-0"


def test_artefacts_are_loaded_before_the_server_and_stored_beside_it(render: Render) -> None:
    """One folder for all three containers, which no other volume covers."""
    deployment = DEPLOYMENTS["direct-neuron"]
    values = deployment_values(deployment, weights_bucket=BUCKET)
    spec = pod(render(values, deployment.release, CHART), "server")
    first, second = spec["initContainers"][:2]
    assert (first["command"][-1], first.get("restartPolicy")) == ("load", None)
    assert (second["command"][-1], second["restartPolicy"]) == ("keep", "Always")
    paths = [each["mountPath"] for each in main_container(spec)["volumeMounts"]]
    assert len(paths) == len({*paths}), "two volumes at one path"
    [process] = deployment.processes
    assert process.artefacts is not None
    for container in (first, second, main_container(spec)):
        assert {"name": "artefacts", "mountPath": process.artefacts.folder} in container["volumeMounts"]
    variables = {each["name"]: each.get("value") for each in main_container(spec)["env"]}
    assert variables["NEURON_COMPILED_ARTIFACTS"] == process.artefacts.folder


@pytest.mark.parametrize(
    ("name", "scheduler", "devices"),
    [
        ("direct-neuron", None, "1"),
        ("direct-neuron-shared", "neuron-scheduler", "4"),
    ],
)
def test_pods_with_a_part_of_a_node_name_the_scheduler_that_chooses_devices(
    rendered: list[Manifest], scheduler: str | None, devices: str
) -> None:
    spec = pod(rendered, "server")
    assert spec.get("schedulerName") == scheduler
    assert str(main_container(spec)["resources"]["limits"]["aws.amazon.com/neuron"]) == devices


@pytest.mark.parametrize("name", ["direct-processors"])
def test_a_server_on_processors_requests_no_device(rendered: list[Manifest]) -> None:
    resources = main_container(pod(rendered, "server"))["resources"]
    for each in resources.values():
        assert {*each} <= {"cpu", "memory", "ephemeral-storage"}
