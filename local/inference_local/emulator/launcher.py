"""The emulator's process: `python -m inference_local.emulator.launcher`.

Applies the project's patches and handlers to ministack, then serves on an inherited socket.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from socket import socket

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app

from inference_local.emulator import resource_checks
from inference_local.emulator.alarm_schedule import AlarmSchedule, Follower
from inference_local.emulator.builds import register_builds
from inference_local.emulator.ecs.agent.container_command import StandInImages
from inference_local.emulator.ecs.ecs_emulation import EcsEmulation
from inference_local.emulator.ecs.network.task_networks import VPC_ADDRESS
from inference_local.emulator.ecs.scaling.scaling_emulation import ScalingEmulation
from inference_local.emulator.ecs.vpc import Vpc
from inference_local.emulator.patches import PATCHES
from inference_local.emulator.patches.promql_evaluation import ask_metrics
from inference_local.emulator.real_kubernetes.registration import register_real_kubernetes
from inference_local.emulator.recording_cluster import RecordingCluster
from inference_local.emulator.resource_handlers.composite_alarms import register_composite_alarms
from inference_local.emulator.resource_handlers.ecs_resources import register_ecs
from inference_local.emulator.resource_handlers.emptied_bucket import register_emptied_bucket
from inference_local.emulator.resource_handlers.kafka_clusters import register_kafka_clusters
from inference_local.emulator.resource_handlers.kubernetes_resources import (
    forget_deleted_clusters,
    register_kubernetes,
)
from inference_local.emulator.resource_handlers.scaling_resources import register_scaling
from inference_local.emulator.resource_handlers.secret_resources import register_secret_resources
from inference_local.emulator.resource_handlers.stubs import register_stubs
from inference_local.emulator.serverless_cache.handler import register_serverless_caches

_SHUTDOWN_SECONDS = 1.0


#: What adds resource types to the emulator, whatever its arguments are.
_RESOURCES = (
    register_stubs,
    register_composite_alarms,
    register_kafka_clusters,
    register_emptied_bucket,
    register_secret_resources,
)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=int, required=True, help="file descriptor of a listening socket")
    parser.add_argument("--records", type=Path, required=True, help="folder for Kubernetes objects")
    parser.add_argument("--helm", type=Path, required=True, help="helm executable")
    parser.add_argument("--caches", type=Path, required=True, help="folder for serverless caches")
    parser.add_argument(
        "--control-plane",
        type=Path,
        help="folder for real control planes; otherwise, objects are only recorded",
    )
    parser.add_argument(
        "--alarm-speed",
        type=float,
        default=1.0,
        help="how much faster than time alarms are evaluated; 0 evaluates them on request only",
    )
    parser.add_argument("--metrics", help="URL of the Prometheus that answers the queries of alarms")
    parser.add_argument("--tasks", type=Path, help="folder for tasks of ECS; without it, none runs")
    parser.add_argument("--task-images", type=Path, help="what stands for the images of tasks")
    parser.add_argument(
        "--task-speed", type=float, default=1.0, help="how much faster than time the clock of ECS is"
    )
    parser.add_argument("--task-names", type=Path, help="file with the names of tasks in the VPC")
    parser.add_argument(
        "--models-socket",
        type=int,
        help="file descriptor on which a load balancer listens; the process is root of its network namespace",
    )
    arguments = parser.parse_args()
    for apply in PATCHES:
        apply()
    if arguments.metrics:
        ask_metrics(arguments.metrics)
    for add in _RESOURCES:
        add()
    register_serverless_caches(arguments.caches)
    if arguments.control_plane:
        register_real_kubernetes(arguments.control_plane)
    else:
        recording = RecordingCluster(arguments.records, arguments.helm)
        register_kubernetes(recording)
        forget_deleted_clusters(recording.forget)
    port = os.environ["GATEWAY_PORT"]
    addresses = [f"fd://{arguments.socket}"]
    # Address, region and credentials of the emulator for tasks and builds.
    access = _prefixed("TASK_")
    follow: Follower | None = None
    with ExitStack() as stack:
        if arguments.tasks:
            vpc = None
            if arguments.models_socket is not None:
                vpc = Vpc(arguments.task_names, socket(fileno=arguments.models_socket))
            images = StandInImages.read(arguments.task_images)
            emulation = EcsEmulation(
                arguments.tasks, images, arguments.task_speed, _in_vpc(access, port) if vpc else access, vpc
            )
            register_ecs(stack.enter_context(emulation))
            scaling = ScalingEmulation(emulation)
            scaling.register()
            register_scaling(scaling)
            follow = scaling.follow
            if vpc is not None:
                # The process is in the namespace, and the inherited socket outside.
                addresses += [f"127.0.0.1:{port}", f"{VPC_ADDRESS}:{port}"]
                register_builds(arguments.tasks / "builds", {**_prefixed("BUILD_"), **access})
        resource_checks.apply()
        _serve_until_end(addresses, AlarmSchedule(arguments.alarm_speed, follow))


def _prefixed(prefix: str) -> dict[str, str]:
    """Return the variables with a prefix, without it."""
    found = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items()}


def _in_vpc(access: Mapping[str, str], port: str) -> dict[str, str]:
    """Return the variables with the emulator's address in the VPC."""
    endpoint = f"http://{VPC_ADDRESS}:{port}"
    return {
        name: endpoint if name.startswith("AWS_ENDPOINT_URL") else value for name, value in access.items()
    }


def _serve_until_end(addresses: list[str], alarms: AlarmSchedule) -> None:
    configuration = Config()
    configuration.bind = addresses
    configuration.graceful_timeout = _SHUTDOWN_SECONDS
    asyncio.run(_serve(configuration, alarms))


async def _serve(configuration: Config, alarms: AlarmSchedule) -> None:
    """Serve until the end. If an evaluation of alarms fails, this fails too."""
    evaluations = asyncio.create_task(alarms.run())
    served = asyncio.create_task(serve(alarms.beside(app.app), configuration))
    await asyncio.wait({evaluations, served}, return_when=asyncio.FIRST_COMPLETED)
    if evaluations.done():
        served.cancel()
        await evaluations
    evaluations.cancel()
    await served


if __name__ == "__main__":
    main()
