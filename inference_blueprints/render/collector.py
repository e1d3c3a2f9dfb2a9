"""What the CloudWatch agent of a platform collects besides its own metrics, and where it sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inference_contracts.metric_labels import GPU_SERIES, RECORDED_JOB, RECORDED_SERIES

#: Time between two scrapes.
SCRAPE_SECONDS: Final = 60
_EXPORTER: Final = "otlphttp/platform"


def platform_collector(region: str, cluster_name: str, jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what an agent collects besides its own: it sends what these jobs scrape to CloudWatch.

    cluster_name: Name of the cluster, which every metric carries.
    jobs: Scrape configurations of Prometheus.
    """
    return {
        "extensions": {"sigv4auth/platform": {"region": region, "service": "monitoring"}},
        "receivers": {"prometheus/platform": {"config": {"scrape_configs": list(jobs)}}},
        "processors": {
            "filter/platform": {
                "error_mode": "ignore",
                "metrics": {"metric": ['IsMatch(name, "^scrape_")']},
            },
            "resource/platform": {
                "attributes": [
                    {"key": "k8s.cluster.name", "value": cluster_name, "action": "upsert"},
                ]
            },
            "batch/platform": {"send_batch_size": 500, "send_batch_max_size": 500, "timeout": "5s"},
        },
        "exporters": {
            _EXPORTER: {
                "endpoint": f"https://monitoring.{region}.amazonaws.com:443",
                "auth": {"authenticator": "sigv4auth/platform"},
            }
        },
        "service": {
            "extensions": ["sigv4auth/platform"],
            "pipelines": {
                "metrics/platform": {
                    "receivers": ["prometheus/platform"],
                    "processors": ["filter/platform", "resource/platform", "batch/platform"],
                    "exporters": [_EXPORTER],
                }
            },
        },
    }


def kept_gpu_series() -> dict[str, Any]:
    """Return the part of a job that keeps the series of GPUs that something asks CloudWatch for."""
    names = "|".join(GPU_SERIES)
    return {"metric_relabel_configs": [{"action": "keep", "source_labels": ["__name__"], "regex": names}]}


def recorded_job(prometheus: str) -> dict[str, Any]:
    """Return the job of series that Prometheus recorded. They keep their own labels.

    On EKS, the Service sends each request to one of two servers, so each series is read once. They have
    neither ``job`` nor ``instance``; the agent then takes those of the target
    (https://github.com/open-telemetry/opentelemetry-collector-contrib/pull/33565). ``/federate``:
    https://prometheus.io/docs/prometheus/latest/federation/

    prometheus: Host and port of Prometheus.
    """
    return {
        "job_name": RECORDED_JOB,
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "honor_labels": True,
        "metrics_path": "/federate",
        "params": {"match[]": [f'{{__name__=~"{RECORDED_SERIES}"}}']},
        "static_configs": [{"targets": [prometheus]}],
    }


def received_traces() -> dict[str, Any]:
    """Return the section ``traces`` of the agent's configuration: it accepts spans on the ports of OTLP.

    The agent sends them to X-Ray by PutTraceSegments, which needs no setting of the account, unlike X-Ray's
    OTLP endpoint: "Make sure Transaction Search is enabled before you use the OTLP Endpoint"
    (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPGettingStarted.html).
    """
    return {"traces_collected": {"otlp": {"grpc_endpoint": "0.0.0.0:4317", "http_endpoint": "0.0.0.0:4318"}}}
