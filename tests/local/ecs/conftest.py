"""An emulator whose tasks really run, sixty times faster where AWS waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inference_local.emulator.ecs.agent.container_command import StandInImage
from inference_local.emulator.emulator import Emulator
from tests.local.ecs.running_cluster import IMAGE, RunningCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    directory = tmp_path_factory.mktemp("ecs")
    with Emulator(
        directory, region="us-west-2", alarm_speed=0, task_images={IMAGE: StandInImage()}, task_speed=60
    ) as emulator:
        yield RunningCluster(emulator)
