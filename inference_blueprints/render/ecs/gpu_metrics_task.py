"""The task on each host of a pool that measures its GPUs: the exporter that runs on EKS.

It is the only DCGM engine of its host: the ECS image for GPUs has none, and workers start none. Without
``SYS_ADMIN`` it reports everything but profiling (``internal/pkg/capabilities`` of NVIDIA/dcgm-exporter
4.8.2), which no rule reads, so it runs without privileges. On Docker's bridge it does not reach the host's
credentials, because the hop limit of the host's metadata is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference_blueprints.render.ecs.metrics_task import metrics_log_group
from inference_blueprints.render.ecs.tasks import RenderedContainer, RenderedTask
from inference_catalog.ecs_images import ecs_image
from inference_contracts.ecs_names import MAIN_CONTAINER
from inference_contracts.metric_labels import GPU_JOB
from inference_contracts.task_tags import LABEL_TAGS, METRICS_JOB_TAG, METRICS_PORT_TAG

#: Name of the service of a pool, before the name of the pool, and of its log streams.
_SERVICE: Final = "gpu-metrics"
#: The exporter's own port.
EXPORTER_PORT: Final = 9400
#: What the chart requests and limits (``deployment/values.yaml``). The serving plan leaves more than that of
#: each host to other programs.
_CPU_UNITS, _RESERVED_MIB, _MAX_MIB = 102, 128, 512
_USER: Final = "1000:1000"
_STOP_SECONDS: Final = 15


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
        cpu_units=_CPU_UNITS,
        memory_mib=_MAX_MIB,
        reservation_mib=_RESERVED_MIB,
        # The task reserves no GPU: NVIDIA's runtime, which is the default of the hosts, shows it all of them.
        environment={"NVIDIA_VISIBLE_DEVICES": "all"},
        user=_USER,
        port=EXPORTER_PORT,
        stop_timeout_seconds=_STOP_SECONDS,
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
