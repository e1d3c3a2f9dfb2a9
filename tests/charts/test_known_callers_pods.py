"""The pods of entry points behind the front door: nothing but the sidecar listens to the network.

The certificates' rotation and what the sidecar refuses are tried with real processes in
`tests/runtime/door_certificates/test_known_callers.py`.
"""

from __future__ import annotations

import json
import re

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, Process
from inference_contracts.door_identities import BEHIND_PORT, CALLERS_PORT, FOLDER
from tests.charts import direct, llm_d
from tests.charts.llm_d import BUCKET, CERTIFICATE_ARN, deployments, main_container, of_kind, sidecars
from tests.charts.renderings import Manifest, Render
from tests.charts.test_network_policies import admits, pods_of

NETWORK = (
    "  network:\n    certificateArn: arn:aws:acm:us-west-2:123456789012:certificate/"
    "0a1b2c3d-0000-4000-8000-000000000000\n    domain: models.example.com\n"
)
OLD_NAMES = "{oldHostNames: {models: {until: '2027-01-31T00:00:00Z'}}}"
#: Blueprints with each kind of entry point.
TEXTS = {
    "dynamo": direct.QUICKSTART,
    "llm-d": llm_d.SHIPPED,
    "vllm": direct.QUICKSTART.replace(*direct.DIRECT),
    "llama.cpp": direct.GRAVITON,
    "vllm-omni": direct.IMAGES,
    "vllm-neuron": direct.TRAINIUM,
}


def planned(kind: str, door: str = "{}") -> DeploymentPlan:
    """Return the first deployment of a blueprint, with a front door.

    Workers of batch have no key for it, so old host names lead to the models where there are any.
    """
    door = OLD_NAMES if "\n  batch:" in TEXTS[kind] else door
    text = f"{TEXTS[kind].rstrip()}\n  frontDoor: {door}\n"
    assert "\n  network:" not in text
    assert "\n    weights:" in text
    rates = "rates: {usdPerMillionInputTokens: 0.1, usdPerMillionOutputTokens: 0.4}"
    # A queue may state prices too, which are then the model's.
    stated = re.search(r"rates: \{.*?\}", text)
    text = text.replace("\n    weights:", f"\n    {stated[0] if stated else rates}\n    weights:")
    if "\n  teams:" not in text:
        text += "  teams: [{name: shop, monthlyBudgetUsd: 2000}]\n"
    region = text.partition("region: ")[2].partition("}")[0].partition(",")[0].strip()
    text = text.replace("spec:\n", f"spec:\n{NETWORK.replace('us-west-2', region)}", 1)
    plan = build_plan(parse_blueprint(text, "blueprint.yaml").blueprint)
    return plan.models[0].deployments[0]


def rendered(render: Render, deployment: DeploymentPlan) -> list[Manifest]:
    values = deployment_values(deployment, weights_bucket=BUCKET, certificate_arn=CERTIFICATE_ARN)
    return render(values, deployment.release, deployment.chart)


def entry_pod(manifests: list[Manifest], entry: Process) -> Manifest:
    for graph in of_kind(manifests, "DynamoGraphDeployment"):
        for component in graph["spec"]["components"]:
            if component["name"] == entry.name:
                return dict(component["podTemplate"]["spec"])
    return dict(deployments(manifests)[entry.name]["template"]["spec"])


@pytest.fixture(params=TEXTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_only_the_sidecar_listens_to_the_network(render: Render, kind: str) -> None:
    deployment = planned(kind)
    pod = entry_pod(rendered(render, deployment), deployment.entry_point)
    main, beside = main_container(pod), sidecars(pod)
    place = main["args"].index("127.0.0.1")
    assert main["args"][place - 1] in ("--host", "--http-host")
    assert str(BEHIND_PORT) in main["args"]
    assert main["args"].count("--host") + main["args"].count("--http-host") == 1
    # In the order of their start: the certificate, then who shows it.
    names = [name for name in beside if name in ("certificate", "callers")]
    assert names == ["certificate", "callers"]
    words = beside["callers"]["args"]
    document = json.loads(words[words.index("--config-yaml") + 1])
    ports = {
        each["name"]: each["address"]["socket_address"]["port_value"]
        for each in document["static_resources"]["listeners"]
    }
    assert ports == {"callers": CALLERS_PORT, "open": 8000}
    [behind] = document["static_resources"]["clusters"]
    assert f'"port_value": {BEHIND_PORT}' in json.dumps(behind)


def test_probes_pass_through_the_port_without_a_certificate(render: Render, kind: str) -> None:
    deployment = planned(kind)
    main = main_container(entry_pod(rendered(render, deployment), deployment.entry_point))
    ports = {each["name"]: each["containerPort"] for each in main["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        check = main[probe]["httpGet"]
        assert ports[check["port"]] == 8000
        assert deployment.entry_point.callers
        assert check["path"] in deployment.entry_point.callers.health_paths


def test_the_certificate_is_in_memory_and_the_program_does_not_see_it(render: Render, kind: str) -> None:
    deployment = planned(kind)
    pod = entry_pod(rendered(render, deployment), deployment.entry_point)
    [volume] = [each for each in pod["volumes"] if each["name"] == "certificate"]
    assert volume["emptyDir"]["medium"] == "Memory"
    containers = {**sidecars(pod), "main": main_container(pod)}
    mounts = {
        name: mount
        for name, each in containers.items()
        for mount in each.get("volumeMounts", [])
        if mount["name"] == "certificate"
    }
    assert {name: mount["mountPath"] for name, mount in mounts.items()} == dict.fromkeys(
        ("certificate", "callers"), FOLDER
    )
    assert mounts["callers"]["readOnly"] is True
    variables = {each["name"]: each["value"] for each in containers["certificate"]["env"]}
    assert CERTIFICATE_ARN in variables.values()


def test_the_network_admits_others_to_the_ports_of_the_sidecar_only(render: Render, kind: str) -> None:
    """Red if the program behind, or a port of the router, takes connections of other pods."""
    deployment = planned(kind, OLD_NAMES)
    manifests = rendered(render, deployment)
    policies = of_kind(manifests, "NetworkPolicy")
    pod = pods_of(manifests)[deployment.entry_point.name]
    stranger = {"app.kubernetes.io/instance": "another"}
    reached = {
        port
        for port in (8000, BEHIND_PORT, CALLERS_PORT, 8001, 9002, 9003, 40123)
        if admits(policies, pod, stranger, "inference", port)
    }
    assert reached == {8000, CALLERS_PORT}


def test_without_a_certificate_nothing_is_rendered() -> None:
    with pytest.raises(ValueError, match="certificate_arn"):
        deployment_values(planned("dynamo"), weights_bucket=BUCKET)


def test_who_may_call_is_stated_for_each_deployment() -> None:
    assert planned("dynamo").entry_point.callers
    deployment = planned("dynamo", OLD_NAMES)
    assert deployment.entry_point.callers
    assert "door" in deployment.entry_point.callers.callers
    # The platform's own programs call through the door.
    assert not {"batch", "streaming", "canary"} & {*map(str, deployment.entry_point.callers.callers)}
