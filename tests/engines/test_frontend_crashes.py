"""Frontends before the real engine are killed and told to end: a client sees it, and the others answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.counting_blueprints import counting
from tests.engines.counting_client import stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import running_engines
from tests.engines.worker_control import WorkerControl, has_ended, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerControl]:
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
    blueprint = counting(
        "quickstart-g6e",
        deployments=[{"name": "main", "aggregated": workers}],
        frontend={"replicas": 4},
    )
    with running_engines(blueprint, tmp_path_factory.mktemp("run"), CountingKind(blueprint)) as running:
        yield WorkerControl(running)


def test_a_killed_frontend_cuts_its_streams_and_another_answers(control: WorkerControl) -> None:
    """A killed frontend cuts its streams after right words, and another frontend answers."""
    killed, other, *_ = control.urls()
    streams = stream_while([killed, other], control.frontend(0).kill)
    for cut in streams[::2]:
        assert cut.broken
        assert cut.is_beginning
        assert (cut.finish, cut.done) == (None, 0)
    assert all(each.is_whole for each in streams[1::2])
    (refused,) = stream_while([killed], lambda: None, streams=1, words=50, begun=1)
    assert refused.status == 502


def test_a_frontend_that_is_told_to_end_finishes_its_streams(control: WorkerControl) -> None:
    """A frontend that gets SIGTERM finishes its streams."""
    *_, ending, other = control.urls()
    process = control.frontend(2)
    streams = stream_while([ending, other], process.terminate)
    assert all(each.is_whole for each in streams)
    wait_until(lambda: has_ended(process), "the frontend ends")
