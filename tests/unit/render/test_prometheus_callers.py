"""Prometheus reads the metrics of entry points behind the front door with a certificate, and no others so."""

from __future__ import annotations

import json

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.callers.keeper import prometheus_tls
from inference_blueprints.render.ecs.metrics_task import metrics_task
from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.render.eks.prometheus_certificate import prometheus_certificate, scraped_door
from inference_blueprints.render.eks.prometheus_size import PrometheusSize
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_contracts import scale_metrics
from inference_contracts.door_identities import CALLERS_PORT, FOLDER, SERVER_NAME
from inference_contracts.door_names import DOOR_JOB, METRICS_PORT
from inference_contracts.metric_labels import METRICS_PORT_LABEL, METRICS_SCHEME_LABEL, SERVING_JOB
from inference_contracts.packed_files import unpack_files

ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:prometheus-AbCdEf"
DOOR = parse_blueprint(shipped()["front-door"].read_text(encoding="utf-8"), "door.yaml").blueprint
PLAN = build_plan(DOOR)


def test_on_eks_pods_say_whose_metrics_are_behind_tls() -> None:
    deployment = build_plan(DOOR).models[0].deployments[0]
    values = deployment_values(deployment, observed_platform="front-door", certificate_arn=ARN)
    schemes = {each["name"]: each["metricLabels"].get(METRICS_SCHEME_LABEL) for each in values["processes"]}
    assert schemes == {"frontend": "https", "worker": None}
    prometheus = chart_values(
        "prometheus",
        size=PrometheusSize(1000).quantities,
        namespace="inference",
        gpu_namespace=None,
        keda_namespace=None,
        dropped="x",
        platform="try",
        rules={},
        certificate=prometheus_certificate(ARN),
        door=scraped_door(PLAN.front_door),
    )
    assert values["processes"][0]["metricLabels"][METRICS_PORT_LABEL] == str(CALLERS_PORT)
    assert "front-door" in prometheus["server"]["namespaces"]
    door = prometheus["scrapeConfigs"][DOOR_JOB]
    assert door["tls_config"]["server_name"] == "api.models.example.com"
    assert {"regex": str(METRICS_PORT)}.items() <= door["relabel_configs"][0].items()
    job = prometheus["scrapeConfigs"][SERVING_JOB]
    assert job["tls_config"] == prometheus_tls()
    [scheme] = [each for each in job["relabel_configs"] if each.get("target_label") == "__scheme__"]
    assert scheme["source_labels"] == ["__meta_kubernetes_pod_label_inference_blueprints_metrics_scheme"]
    server = prometheus["server"]
    [keeper] = server["extraInitContainers"]
    assert keeper["restartPolicy"] == "Always"
    assert ARN in json.dumps(keeper["env"])
    assert server["extraVolumeMounts"] == [{"name": "certificate", "mountPath": FOLDER, "readOnly": True}]


def test_on_ecs_entry_points_have_the_port_of_callers() -> None:
    plan = build_plan(DOOR)
    task = metrics_task("front-door", plan, rules={}, gpu_metrics=True, traces=False, region="us-west-2")
    containers = {each.name: each for each in task.containers}
    assert sum(each.cpu_units for each in task.containers) <= (task.cpu_units or 0)
    assert sum(each.memory_mib for each in task.containers) <= (task.memory_mib or 0)
    files = unpack_files(str(containers["targets"].environment[scale_metrics.FILES]))
    jobs = {
        each["job_name"]: each
        for each in json.loads(files["/configuration/prometheus.yml"])["scrape_configs"]
    }
    assert jobs[SERVING_JOB]["tls_config"]["server_name"] == SERVER_NAME
    [rule] = jobs[SERVING_JOB]["relabel_configs"]
    assert (rule["regex"], rule["replacement"]) == (f".*:{CALLERS_PORT}", "https")
    assert "tls_config" not in jobs["gpu"]
    assert jobs[DOOR_JOB]["scheme"] == "https"
    assert jobs[DOOR_JOB]["tls_config"] == prometheus_tls("api.models.example.com")
    needs = {each.container for each in containers["prometheus"].depends_on}
    assert needs == {"targets", "certificate"}
