"""The task that measures a platform: a valid request, small enough, whose program and files are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import yaml
from botocore.session import Session
from botocore.validate import ParamValidator

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.metrics_task import metrics_task
from inference_blueprints.render.ecs.tasks import TaskReferences, to_register
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.render.monitoring.recording_rules import rule_groups
from inference_blueprints.serving.plan import build_plan
from inference_contracts import scale_metrics
from inference_contracts.packed_files import pack_files, unpack_files
from inference_contracts.trace_names import traces_endpoint_on_ecs

_REFERENCES = TaskReferences(
    region="us-west-2", task_role_arn="role", execution_role_arn="execution", discovery_secret=str
)
#: Amazon ECS Developer Guide, "Amazon ECS service quotas".
_LARGEST = 64 * 1024


def _request(name: str, *, traces: bool = False) -> dict[str, Any]:
    blueprint = load_blueprint(name).blueprint
    plan, spec = build_plan(blueprint), blueprint.spec
    rules = rule_groups(platform_rules("chat", plan, spec))
    task = metrics_task("chat", plan, rules=rules, gpu_metrics=True, traces=traces, region="us-west-2")
    return to_register(task, _REFERENCES)


def _containers(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in request["containerDefinitions"]}


def _environment(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["environment"]}


@pytest.mark.parametrize("name", ["elastic-g6e", "capacity-and-health"])
def test_the_request_is_one_of_the_api_and_fits(name: str) -> None:
    request = _request(name)
    shape = Session().get_service_model("ecs").operation_model("RegisterTaskDefinition").input_shape
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    assert len(json.dumps(request)) < _LARGEST
    containers = _containers(request).values()
    assert sum(each["cpu"] for each in containers) <= int(request["cpu"])
    assert sum(each["memory"] for each in containers) <= int(request["memory"])


def _own_configuration(request: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_environment(_containers(request)["agent"])["CW_CONFIG_CONTENT"])
    return content


def test_the_agent_receives_spans_on_the_port_that_tasks_send_them_to() -> None:
    without, receiving = (_own_configuration(_request("elastic-g6e", traces=each)) for each in (False, True))
    assert "traces" not in without
    listens = receiving["traces"]["traces_collected"]["otlp"]["grpc_endpoint"]
    assert listens == f"0.0.0.0:{urlsplit(traces_endpoint_on_ecs('chat')).port}"


def test_prometheus_asks_the_program_for_targets_and_reads_the_rules() -> None:
    containers = _containers(_request("elastic-g6e"))
    files = unpack_files(_environment(containers["targets"])[scale_metrics.FILES])
    configuration = yaml.safe_load(files["/configuration/prometheus.yml"])
    [rules] = configuration["rule_files"]
    assert yaml.safe_load(files[rules])["groups"][0]["rules"]
    urls = [each["http_sd_configs"][0]["url"] for each in configuration["scrape_configs"]]
    assert urls == ["http://127.0.0.1:9099/targets/serving", "http://127.0.0.1:9099/targets/gpu"]
    assert "--config.file=/configuration/prometheus.yml" in containers["prometheus"]["command"]


def test_the_agent_reads_recorded_series_from_prometheus() -> None:
    collector = json.loads(
        _environment(_containers(_request("elastic-g6e"))["agent"])["CW_OTEL_CONFIG_CONTENT"]
    )
    jobs = collector["receivers"]["prometheus/platform"]["config"]["scrape_configs"]
    assert [each["job_name"] for each in jobs] == ["recorded", "gpu"]
    assert jobs[0]["static_configs"] == [{"targets": ["127.0.0.1:9090"]}]


@pytest.mark.thorough
def test_the_program_runs_from_its_variable_alone(tmp_path: Path) -> None:
    """It writes the files, and ends because a variable is missing: all its imports are in the archive."""
    container = _containers(_request("elastic-g6e"))["targets"]
    written = tmp_path / "rules.yml"
    packages = Path(boto3.__file__).parents[1]
    environment = {
        **_environment(container),
        scale_metrics.FILES: pack_files({str(written): "groups: []"}),
        scale_metrics.ROLES: "",
        "PYTHONPATH": str(packages),
        "AWS_DEFAULT_REGION": "us-west-2",
        "PATH": os.environ["PATH"],
    }
    ended = subprocess.run(
        [sys.executable, *container["command"]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "environment variables are missing: TASK_TARGETS_ROLES" in ended.stderr
    assert written.read_text() == "groups: []"
    # The library is installed beside boto3 here, so the files must come from the archive to prove anything.
    assert "/proc/self/fd/" in ended.stderr
