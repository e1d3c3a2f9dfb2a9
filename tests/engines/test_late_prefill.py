"""A decode worker of the real engine starts before its prefill worker."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference_blueprints.targets.local.launch import Launch
from inference_blueprints.targets.local.local_deployment import WorkerPlace
from inference_blueprints.targets.local.local_serving import LocalServing
from tests.engines.counting_blueprints import disaggregated
from tests.engines.counting_client import Stream, stream_while
from tests.engines.counting_kind import CountingKind, CountingRole
from tests.engines.running import RunningEngines, running_engines
from tests.engines.worker_control import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]
#: Exists once the prefill worker may start.
_PERMISSION = "prefill-may-start"
_AFTER_PERMISSION = 'until [ -e "$0" ]; do /bin/sleep 0.2; done; exec "$@"'


class _LateRole(CountingRole):
    """The prefill worker waits, as for a node or an image."""

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        launch = CountingRole.launch(self, model, place, workers)
        if self.role != "prefill":
            return launch
        waiting = ["/bin/sh", "-c", _AFTER_PERMISSION, str(place.home / _PERMISSION)]
        return replace(launch, command=[*waiting, *launch.command])


class _LateKind(CountingKind):
    role = _LateRole


def has_decode_worker(serving: LocalServing) -> bool:
    """Return whether every frontend knows a worker that generates. It does not list the model yet."""
    [deployment] = serving.deployments
    pages = [_health(url) for url in serving.frontend_urls(deployment)]
    return bool(pages) and all('"endpoint":"generate"' in page for page in pages)


def _health(url: str) -> str:
    try:
        with urllib.request.urlopen(f"{url}/health") as answer:  # noqa: S310 - a loopback address
            return str(answer.read().decode())
    except OSError:
        return ""


@pytest.fixture(scope="module")
def early() -> list[Stream]:
    """Return the streams of requests that came before the prefill worker."""
    return []


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory, early: list[Stream]) -> Iterator[RunningEngines]:
    blueprint = disaggregated(prefill=1, decode=1)
    directory: Path = tmp_path_factory.mktemp("run")

    def before_prefill(serving: LocalServing) -> None:
        """Send requests once the frontends know the decode worker, then let the prefill worker start."""
        [deployment] = serving.deployments
        try:
            wait_until(lambda: has_decode_worker(serving), "the decode worker is registered", 1200)
            urls = [f"{url}/v1" for url in serving.frontend_urls(deployment)]
            early.extend(stream_while(urls, lambda: None, streams=4, words=50, begun=1))
        finally:
            next(directory.rglob("model")).with_name(_PERMISSION).touch()

    with running_engines(blueprint, directory, _LateKind(blueprint), meanwhile=before_prefill) as running:
        yield running


def test_requests_before_the_prefill_worker_are_refused(
    engines: RunningEngines,
    early: list[Stream],
) -> None:
    """A decode worker that starts before any prefill worker: requests are refused at once."""
    assert len(early) == 4
    for each in early:
        assert json.loads(each.error)["code"] == 503, each
        assert not each.text


def test_after_that_the_decode_worker_receives_prompts(engines: RunningEngines) -> None:
    """The prefill worker that starts later computes the prompts, and the decode worker receives them."""
    [deployment] = engines.serving.deployments
    urls = [f"{url}/v1" for url in engines.serving.frontend_urls(deployment)]
    streams = stream_while(urls, lambda: None, words=50, begun=1)
    assert all(each.is_whole for each in streams), streams
    assert engines.counted("decode", "external_prefix_cache_hits_total") > 0
    assert engines.counted("decode", "nixl_num_failed_transfers_total") == 0
