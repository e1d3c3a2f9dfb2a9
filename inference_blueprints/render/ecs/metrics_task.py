"""The tasks that measure a platform on ECS: its metrics and loads, and the GPUs of each host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from inference_blueprints.render.callers.keeper import KEEPER, prometheus_tls
from inference_blueprints.render.collector import (
    SCRAPE_SECONDS,
    kept_gpu_series,
    platform_collector,
    received_traces,
    recorded_job,
)
from inference_blueprints.render.ecs.caller_containers import KEEPER_CPU_UNITS, keeper_container
from inference_blueprints.render.ecs.scaling_policies import published_roles
from inference_blueprints.render.ecs.task_program import (
    PROGRAM_ENTRY_POINT,
    TASK_PROGRAM,
    program_arguments,
    task_program,
)
from inference_blueprints.render.ecs.tasks import (
    Dependency,
    RenderedContainer,
    RenderedTask,
    TaskHealth,
    TaskMount,
    TaskVolume,
)
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_catalog.catalogue import shipped
from inference_catalog.ecs_images import ecs_image
from inference_contracts import scale_metrics
from inference_contracts.door_identities import CALLERS_PORT, FOLDER
from inference_contracts.door_names import DOOR_JOB, DOOR_ROLE
from inference_contracts.ecs_names import MAIN_CONTAINER
from inference_contracts.metric_labels import GPU_JOB, SERVING_JOB
from inference_contracts.packed_files import pack_files
from inference_contracts.task_tags import LABEL_TAGS, METRICS_JOB_TAG, METRICS_PORT_TAG

#: Name of the service and of its log streams.
METRICS_SERVICE: Final = "metrics"
_PROGRAM: Final = "task_targets"
#: Where the task's programs share their files.
FILES_FOLDER: Final = "/configuration"
_SECONDS: Final = 15
#: A size of Fargate (Amazon ECS Developer Guide, "Fargate task definition differences").
CPU_UNITS, MEMORY_MIB = 1024, 4096
#: Fargate has sizes in whole GiB.
_MORE_MEMORY_MIB: Final = 1024
PROMETHEUS: Final = "prometheus"
#: The longest window of a rule is six hours, and CloudWatch keeps what people look up.
_RETENTION: Final = ("--storage.tsdb.retention.time=8h", "--storage.tsdb.retention.size=6GB")
#: Its longest stop: it writes its memory to disk.
_STOP_SECONDS: Final = 60


def metrics_log_group(platform: str) -> str:
    """Return the name of the task's log group. The publisher's lines in it become metrics."""
    return f"/inference-blueprints/{platform}/metrics"


def metrics_task(
    platform: str,
    plan: ServingPlan,
    *,
    rules: Mapping[str, Any],
    gpu_metrics: bool,
    traces: bool,
    region: str,
) -> RenderedTask:
    """Return the task.

    platform: Name of the platform and of its cluster.
    rules: Content of the file of recording rules.
    gpu_metrics: Whether hosts run the exporter of GPU metrics.
    traces: Whether the agent receives the traces of other tasks.
    region: Region of the platform, which may be a reference.
    """
    jobs = (SERVING_JOB, GPU_JOB) if gpu_metrics else (SERVING_JOB,)
    # Entry points behind a front door ask for a certificate.
    shown = (keeper_container(PROMETHEUS),) if plan.front_door else ()
    return RenderedTask(
        family=f"{platform}-{METRICS_SERVICE}",
        compute="fargate",
        network="awsvpc",
        architecture="amd64",
        cpu_units=CPU_UNITS,
        memory_mib=MEMORY_MIB + (_MORE_MEMORY_MIB if shown else 0),
        containers=(
            *shown,
            _targets(platform, plan, rules, jobs),
            _prometheus(certified=bool(shown)),
            _agent(platform, jobs, region, traces=traces),
        ),
        volumes=(TaskVolume("configuration"), *((TaskVolume(KEEPER),) if shown else ())),
        log_group=metrics_log_group(platform),
        log_prefix=METRICS_SERVICE,
    )


def _targets(
    platform: str, plan: ServingPlan, rules: Mapping[str, Any], jobs: tuple[str, ...]
) -> RenderedContainer:
    files = {
        f"{FILES_FOLDER}/prometheus.yml": json.dumps(_prometheus_configuration(jobs, plan.front_door)),
        f"{FILES_FOLDER}/recording_rules.yml": json.dumps(rules),
    }
    ready = f"http://127.0.0.1:{scale_metrics.PORT}{scale_metrics.READY_PATH}"
    return RenderedContainer(
        name="targets",
        image=ecs_image("python"),
        entry_point=PROGRAM_ENTRY_POINT,
        command=program_arguments(_PROGRAM),
        cpu_units=256,
        memory_mib=512,
        environment={
            TASK_PROGRAM: task_program(_PROGRAM),
            # Where the image has boto3, if it is not beside Python's own packages.
            "PYTHONPATH": "/var/runtime",
            scale_metrics.CLUSTER: platform,
            scale_metrics.PLATFORM: platform,
            scale_metrics.ROLES: scale_metrics.roles_json(published_roles(plan)),
            scale_metrics.FILES: pack_files(files),
        },
        mounts=(TaskMount("configuration", FILES_FOLDER),),
        stop_timeout_seconds=_SECONDS,
        health=TaskHealth(
            ("python3", "-c", f"import urllib.request as r; r.urlopen({ready!r}, timeout=4)"), 10, 5, 3, 30
        ),
    )


def _prometheus_configuration(jobs: tuple[str, ...], door: DoorPlan | None) -> dict[str, Any]:
    every = f"{_SECONDS}s"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": "10s", "evaluation_interval": every},
        "rule_files": [f"{FILES_FOLDER}/recording_rules.yml"],
        "scrape_configs": [
            *(
                _scrape_job(job, _SECONDS) | (_behind_tls() if door and job == SERVING_JOB else {})
                for job in jobs
            ),
            *([_door_job(door)] if door else []),
        ],
    }


def _scrape_job(job: str, seconds: int) -> dict[str, Any]:
    """Return a job whose targets the task's own program knows."""
    url = f"http://127.0.0.1:{scale_metrics.PORT}{scale_metrics.targets_path(job)}"
    dropped = {
        "action": "drop",
        "source_labels": ["__name__"],
        "regex": shipped().serving_metrics.dropped_names,
    }
    return {
        "job_name": job,
        "scrape_interval": f"{seconds}s",
        "http_sd_configs": [{"url": url, "refresh_interval": f"{_SECONDS}s"}],
        **({"metric_relabel_configs": [dropped]} if job == SERVING_JOB else {}),
    }


def _door_job(door: DoorPlan) -> dict[str, Any]:
    """Return the job that reads the port of the front door's replicas which admits Prometheus only."""
    return _scrape_job(DOOR_JOB, _SECONDS) | {
        "scheme": "https",
        "tls_config": prometheus_tls(door.host_name),
        "relabel_configs": [{"action": "replace", "target_label": "role", "replacement": DOOR_ROLE}],
    }


def _behind_tls() -> dict[str, Any]:
    """Return how the metrics of entry points are read: with a certificate. Workers have other ports."""
    entry_points = {"action": "replace", "source_labels": ["__address__"], "regex": f".*:{CALLERS_PORT}"}
    return {
        "relabel_configs": [{**entry_points, "target_label": "__scheme__", "replacement": "https"}],
        "tls_config": prometheus_tls(),
    }


def _prometheus(*, certified: bool) -> RenderedContainer:
    return RenderedContainer(
        name="prometheus",
        image=ecs_image("prometheus"),
        command=(
            f"--config.file={FILES_FOLDER}/prometheus.yml",
            "--storage.tsdb.path=/prometheus",
            *_RETENTION,
            "--web.listen-address=127.0.0.1:9090",
        ),
        cpu_units=512 - (KEEPER_CPU_UNITS if certified else 0),
        memory_mib=2560,
        mounts=(
            TaskMount("configuration", FILES_FOLDER, read_only=True),
            *((TaskMount(KEEPER, FOLDER, read_only=True),) if certified else ()),
        ),
        depends_on=(
            Dependency("targets", "HEALTHY"),
            *((Dependency(KEEPER, "HEALTHY"),) if certified else ()),
        ),
        stop_timeout_seconds=_STOP_SECONDS,
    )


def _agent(platform: str, jobs: tuple[str, ...], region: str, *, traces: bool) -> RenderedContainer:
    """Return the agent. It merges ``CW_OTEL_CONFIG_CONTENT`` into what it makes of ``CW_CONFIG_CONTENT``.

    https://github.com/aws/amazon-cloudwatch-agent, cmd/amazon-cloudwatch-agent/merge.go. The second must not
    be empty: it is the example of the Amazon CloudWatch User Guide, "Deploy the CloudWatch agent on Amazon
    ECS", and nobody sends to it.
    """
    scraped = [recorded_job("127.0.0.1:9090")]
    if GPU_JOB in jobs:
        scraped.append({**_scrape_job(GPU_JOB, SCRAPE_SECONDS), **kept_gpu_series()})
    own: dict[str, Any] = {
        "agent": {"region": region},
        "metrics": {"metrics_collected": {"statsd": {"service_address": "127.0.0.1:8125"}}},
    }
    if traces:
        own["traces"] = received_traces()
    return RenderedContainer(
        name="agent",
        image=ecs_image("cloudwatch-agent"),
        command=(),
        cpu_units=256,
        memory_mib=1024,
        environment={
            "CW_CONFIG_CONTENT": json.dumps(own),
            "CW_OTEL_CONFIG_CONTENT": json.dumps(platform_collector(region, platform, scraped)),
        },
        depends_on=(Dependency("targets", "HEALTHY"),),
        stop_timeout_seconds=_SECONDS,
    )


# The task on each host of a pool that measures its GPUs: the exporter that runs on EKS.
#
# It is the only DCGM engine of its host: the ECS image for GPUs has none, and workers start none. Without
# ``SYS_ADMIN`` it reports everything but profiling (``internal/pkg/capabilities`` of NVIDIA/dcgm-exporter
# 4.8.2), which no rule reads, so it runs without privileges. On Docker's bridge it does not reach the host's
# credentials, because the hop limit of the host's metadata is one.

#: Name of the service of a pool, before the name of the pool, and of its log streams.
_SERVICE: Final = "gpu-metrics"
#: The exporter's own port.
EXPORTER_PORT: Final = 9400
#: What the chart requests and limits (``deployment/values.yaml``). The serving plan leaves more than that of
#: each host to other programs.
_EXPORTER_CPU_UNITS, _RESERVED_MIB, _MAX_MIB = 102, 128, 512
_USER: Final = "1000:1000"
_EXPORTER_STOP_SECONDS: Final = 15


def gpu_metrics_service(pool: str) -> str:
    """Return the name of the service of a pool."""
    return f"{_SERVICE}-{pool}"


def gpu_metrics_tags(platform: str, pool: str) -> Mapping[str, str]:
    """Return the tags by which Prometheus finds the tasks of a pool."""
    return {
        LABEL_TAGS["platform"]: platform,
        LABEL_TAGS["pool"]: pool,
        METRICS_JOB_TAG: GPU_JOB,
        METRICS_PORT_TAG: str(EXPORTER_PORT),
    }


def gpu_metrics_task(platform: str) -> RenderedTask:
    """Return the task, which is the same on every pool.

    platform: Name of the platform and of its cluster.
    """
    container = RenderedContainer(
        name=MAIN_CONTAINER,
        image=ecs_image("dcgm-exporter"),
        command=("-f", "/etc/dcgm-exporter/default-counters.csv"),
        cpu_units=_EXPORTER_CPU_UNITS,
        memory_mib=_MAX_MIB,
        reservation_mib=_RESERVED_MIB,
        # The task reserves no GPU: NVIDIA's runtime, which is the default of the hosts, shows it all of them.
        environment={"NVIDIA_VISIBLE_DEVICES": "all"},
        user=_USER,
        port=EXPORTER_PORT,
        stop_timeout_seconds=_EXPORTER_STOP_SECONDS,
    )
    return RenderedTask(
        family=f"{platform}-{_SERVICE}",
        compute="group",
        network="bridge",
        # ECS' image for GPUs exists for x86 only, so `validate` refuses other hosts.
        architecture="amd64",
        containers=(container,),
        log_group=metrics_log_group(platform),
        log_prefix=_SERVICE,
    )
