"""The emulator's process: `python -m inference_blueprints.local.emulator.launcher`.

Applies the project's patches and handlers to ministack, then serves on an inherited socket.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from contextlib import ExitStack
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app

from inference_blueprints.local.emulator.alarm_schedule import AlarmSchedule
from inference_blueprints.local.emulator.ecs.agent.stand_in_images import StandInImages
from inference_blueprints.local.emulator.ecs.ecs_emulation import EcsEmulation
from inference_blueprints.local.emulator.patches import PATCHES
from inference_blueprints.local.emulator.real_kubernetes.registration import register_real_kubernetes
from inference_blueprints.local.emulator.recording_cluster import RecordingCluster
from inference_blueprints.local.emulator.resource_handlers.composite_alarms import register_composite_alarms
from inference_blueprints.local.emulator.resource_handlers.ecs_resources import register_ecs
from inference_blueprints.local.emulator.resource_handlers.emptied_bucket import register_emptied_bucket
from inference_blueprints.local.emulator.resource_handlers.kafka_clusters import register_kafka_clusters
from inference_blueprints.local.emulator.resource_handlers.kubernetes_resources import register_kubernetes
from inference_blueprints.local.emulator.resource_handlers.recorded_alarms import register_recorded_alarms
from inference_blueprints.local.emulator.resource_handlers.stubs import register_stubs
from inference_blueprints.local.emulator.serverless_cache.handler import register_serverless_caches

_SHUTDOWN_SECONDS = 1.0


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
    parser.add_argument("--tasks", type=Path, help="folder for tasks of ECS; without it, none runs")
    parser.add_argument("--task-images", type=Path, help="what stands for the images of tasks")
    parser.add_argument(
        "--task-speed", type=float, default=1.0, help="how much faster than time the clock of ECS is"
    )
    arguments = parser.parse_args()
    for apply in PATCHES:
        apply()
    register_stubs()
    register_recorded_alarms()
    register_composite_alarms()
    register_kafka_clusters()
    register_emptied_bucket()
    register_serverless_caches(arguments.caches)
    if arguments.control_plane:
        register_real_kubernetes(arguments.control_plane)
    else:
        register_kubernetes(RecordingCluster(arguments.records, arguments.helm))
    with ExitStack() as stack:
        if arguments.tasks:
            images = StandInImages.read(arguments.task_images)
            variables = {name: value for name, value in os.environ.items() if name.startswith("TASK_AWS_")}
            given = {name.removeprefix("TASK_"): value for name, value in variables.items()}
            emulation = EcsEmulation(arguments.tasks, images, arguments.task_speed, given)
            register_ecs(stack.enter_context(emulation))
        _serve_until_end(arguments.socket, arguments.alarm_speed)


def _serve_until_end(socket: int, alarm_speed: float) -> None:
    configuration = Config()
    configuration.bind = [f"fd://{socket}"]
    configuration.graceful_timeout = _SHUTDOWN_SECONDS
    asyncio.run(_serve(configuration, AlarmSchedule(alarm_speed)))


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
