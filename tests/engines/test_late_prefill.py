"""A decode worker of the real engine starts before its prefill worker, as when a node or an image is late."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.engines.counting_blueprints import disaggregated
from tests.engines.counting_client import Stream, stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import starting_engines
from tests.engines.worker_control import WorkerControl, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]
#: Bounds a hang, not a speed: the decode worker imports vLLM and reads its model.
_START_SECONDS = 1800.0


def _answer(url: str) -> Any:
    """Return the JSON at a URL of this machine; None if nothing answers there or it is no 200."""
    try:
        with urllib.request.urlopen(url) as answer:  # noqa: S310 -- a loopback address
            return json.load(answer)
    except urllib.error.URLError:
        return None


def _lists_a_worker(frontend: str) -> bool:
    """Return whether a frontend has discovered a worker that generates, whatever models it offers."""
    health = _answer(f"{frontend}/health") or {}
    return any(each["endpoint"] == "generate" for each in health.get("instances", []))


def _are_refused(control: WorkerControl, refused: list[Stream]) -> bool:
    """Send requests to every frontend, add them to a list, and return whether all got 503."""
    streams = stream_while(control.urls(), lambda: None, streams=4, words=50, begun=1)
    refused.extend(streams)
    return {each.status for each in streams} == {503}


def test_requests_are_refused_until_the_prefill_worker_is_there(tmp_path: Path) -> None:
    """A decode worker that starts first: requests get 503 until a prefill worker is there, then each word."""
    blueprint = disaggregated(prefill=1, decode=1)
    with starting_engines(blueprint, tmp_path, CountingKind(blueprint)) as running:
        control = WorkerControl(running)
        # It has not read its model yet: no frontend has seen it.
        control.kill(control.worker("prefill"))
        frontends = [url.removesuffix("/v1") for url in control.urls()]
        for frontend in frontends:
            wait_until(partial(_lists_a_worker, frontend), f"{frontend} finds the worker", _START_SECONDS)
        refused: list[Stream] = []
        wait_until(partial(_are_refused, control, refused), "requests are refused with 503")
        # 404 without a body until the frontend has read the description of the model.
        assert {each.status for each in refused} <= {404, 503}, refused
        assert not any(each.text for each in refused), refused
        assert all(json.loads(each.error)["code"] == 503 for each in refused if each.status == 503), refused
        for frontend in frontends:
            assert _answer(f"{frontend}/v1/models")["data"] == []
            assert _lists_a_worker(frontend)
        control.restore()
        streams = stream_while(control.urls(), lambda: None, words=50, begun=1)
        assert all(each.is_whole for each in streams), streams
        assert control.counted("decode", "external_prefix_cache_hits_total") > 0
        assert control.counted("decode", "nixl_num_failed_transfers_total") == 0
