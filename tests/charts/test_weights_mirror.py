"""The Job that copies a model, and the workers that wait for it."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from inference_blueprints.render.eks.model_values import deployment_values
from inference_catalog import node_facts
from inference_catalog.charts import charts, charts_directory
from inference_local.manifests import validate_manifest
from inference_runtime import runtime_directory
from tests.charts.dynamo import main_container, pods
from tests.charts.llm_d import HUB_ARN, of_kind
from tests.charts.renderings import KUBERNETES_VERSION, Manifest, Render, Staged, run_helm
from tests.charts.weights_mirror import BUCKET, CHART, GATED, RELEASE, planned, values_of


@pytest.fixture
def gated(render: Render) -> list[Manifest]:
    """What mirrors a gated model."""
    return render(GATED, RELEASE, CHART)


def job_of(manifests: list[Manifest]) -> Manifest:
    [job] = of_kind(manifests, "Job")
    return job


def pod_of(manifests: list[Manifest]) -> Manifest:
    pod: Manifest = job_of(manifests)["spec"]["template"]["spec"]
    return pod


def test_helm_finds_nothing_to_complain_of(staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged(CHART), values=values_of(planned()))
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


def test_nothing_else_is_installed(gated: list[Manifest]) -> None:
    assert sorted(manifest["kind"] for manifest in gated) == [
        "ConfigMap",
        "Job",
        "SecretProviderClass",
        "ServiceAccount",
    ]


def test_the_program_arrives_as_it_is_written(gated: list[Manifest]) -> None:
    [programs] = of_kind(gated, "ConfigMap")
    folder = runtime_directory() / "weights"
    for name, text in programs["data"].items():
        assert text.rstrip("\n") == (folder / name).read_text(encoding="utf-8").rstrip("\n")
    container = main_container(pod_of(gated))
    [mount] = [mount for mount in container["volumeMounts"] if mount["name"] == "program"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    module = container["command"][-1]
    assert f"{environment['PYTHONPATH']}/{module.split('.')[0]}" == mount["mountPath"]
    assert f"{module.split('.')[1]}.py" in programs["data"]


def test_another_program_or_model_is_another_job(render: Render) -> None:
    values = values_of(planned())
    changed = copy.deepcopy(values)
    changed["program"]["mirror.py"] += "\n"
    names = {job_of(render(each, RELEASE, CHART))["metadata"]["name"] for each in (values, values, changed)}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)


def test_a_refusal_ends_the_job_and_a_lost_node_does_not(gated: list[Manifest]) -> None:
    final, lost = job_of(gated)["spec"]["podFailurePolicy"]["rules"]
    assert (final["action"], final["onExitCodes"]["values"]) == ("FailJob", [2])
    assert final["onExitCodes"]["containerName"] == main_container(pod_of(gated))["name"]
    assert lost["action"] == "Ignore"
    assert pod_of(gated)["restartPolicy"] == "Never", "a failure policy needs it"


def test_the_token_is_read_by_reference_and_only_where_there_is_one(
    gated: list[Manifest], render: Render
) -> None:
    [provider] = of_kind(gated, "SecretProviderClass")
    [requested] = yaml.safe_load(provider["spec"]["parameters"]["objects"])
    assert requested["objectName"] == HUB_ARN
    [entry] = [entry for entry in main_container(pod_of(gated))["env"] if entry["name"] == "HF_TOKEN"]
    [target] = provider["spec"]["secretObjects"]
    assert entry["valueFrom"]["secretKeyRef"] == {"name": target["secretName"], "key": "HF_TOKEN"}
    public = render(values_of(planned()), RELEASE, CHART)
    assert not of_kind(public, "SecretProviderClass")
    assert {volume["name"] for volume in pod_of(public)["volumes"]} == {"program", "temporary"}


def test_it_runs_without_privilege_on_nodes_without_a_pool(gated: list[Manifest]) -> None:
    pod = pod_of(gated)
    security = main_container(pod)["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [term] = required["nodeSelectorTerms"]
    rules = {rule["key"]: rule["operator"] for rule in term["matchExpressions"]}
    assert rules[node_facts.POOL_LABEL] == "DoesNotExist"


def test_workers_wait_with_the_mirrors_program_for_its_prefix(gated: list[Manifest], render: Render) -> None:
    deployment = planned().deployments[0]
    values = deployment_values(deployment, weights_bucket=BUCKET)
    manifests = render(values, deployment.release)
    for manifest in manifests:
        assert validate_manifest(manifest, KUBERNETES_VERSION) == []
    rendered = pods(manifests)
    assert "initContainers" not in rendered["frontend"]
    [waiting] = [each for each in rendered["worker"]["initContainers"] if each["name"] == "weights"]
    [programs] = of_kind(gated, "ConfigMap")
    assert waiting["command"] == ["python3", "-m", "weights.wait"]
    assert "wait.py" in programs["data"]
    [volume] = [each for each in rendered["worker"]["volumes"] if each["name"] == "weights"]
    assert volume["configMap"] == {"name": programs["metadata"]["name"]}
    copying = {entry["name"]: entry.get("value") for entry in main_container(pod_of(gated))["env"]}
    for container in (waiting, main_container(rendered["worker"])):
        environment = {entry["name"]: entry.get("value") for entry in container["env"]}
        for name in ("WEIGHTS_BUCKET", "WEIGHTS_PREFIX"):
            assert environment[name] == copying[name]
    assert copying["WEIGHTS_BUCKET"] == BUCKET


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.pop("image"),
        lambda values: values.update(image="worker"),
        lambda values: values.update(program={}),
        lambda values: values.update(program={"../x.py": "1"}),
        lambda values: values.update(replicas=1),
        lambda values: values["environment"].append({"name": "A", "ownAddress": True}),
    ],
)
def test_values_that_the_schema_does_not_know_are_refused(
    change: Callable[[Manifest], object], staged: Staged
) -> None:
    values = values_of(planned())
    change(values)
    result = run_helm("template", RELEASE, staged(CHART), values=values)
    assert result.returncode != 0
    assert "values don't meet the specifications of the schema" in result.stderr


def test_the_charts_file_names_the_charts_own_version() -> None:
    document = yaml.safe_load((charts_directory() / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    chart = charts()[CHART]
    assert chart.version == document["version"]
    assert document["kubeVersion"] == f">={chart.minimum_kubernetes}.0-0"


def test_the_job_has_every_file_that_it_and_waiting_workers_import_and_no_other(
    gated: list[Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [programs] = of_kind(gated, "ConfigMap")
    (tmp_path / "weights").mkdir()
    for name, text in programs["data"].items():
        (tmp_path / "weights" / name).write_text(text, encoding="utf-8")
    ours = str(runtime_directory())
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(each for each in sys.path if each != ours)])
    with patch.dict(sys.modules):
        # As in the pod, nothing of ours is there besides these files.
        for name, module in [*sys.modules.items()]:
            if (getattr(module, "__file__", None) or "").startswith(ours):
                del sys.modules[name]
        for name in ("weights.mirror", "weights.wait"):
            importlib.import_module(name)
        loaded = {f"{name.split('.')[1]}.py" for name in sys.modules if name.startswith("weights.")}
    assert {"__init__.py", *loaded} == set(programs["data"])
