"""Prefill and decode workers of the real engine are told to end, with the plan's time for their streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.counting_blueprints import disaggregated
from tests.engines.counting_client import stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import running_engines
from tests.engines.worker_control import WorkerControl, has_ended, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]
_FAILED_TRANSFERS = "nixl_num_failed_transfers_total"
_TRANSFERS = "nixl_xfer_time_seconds_count"


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerControl]:
    blueprint = disaggregated(prefill=2, decode=2)
    with running_engines(blueprint, tmp_path_factory.mktemp("run"), CountingKind(blueprint)) as running:
        yield WorkerControl(running)


def test_a_decode_worker_that_is_told_to_end_finishes_its_streams(control: WorkerControl) -> None:
    """SIGTERM to a decode worker: it finishes its streams, none moves, and it ends."""
    victim, moved = control.worker("decode"), control.migrations()

    def end() -> None:
        assert control.counted(victim.name, "num_requests_running") > 0, "the worker has no streams"
        control.tell_to_end(victim)

    process = control.process(victim.name)
    streams = stream_while(control.urls(), end)
    assert all(each.is_whole for each in streams), streams
    assert control.migrations() == moved, "streams were moved although there was time to finish them"
    wait_until(lambda: has_ended(process), "the worker ends")


def test_a_prefill_worker_that_is_told_to_end_finishes_prompts_and_transfers(control: WorkerControl) -> None:
    """SIGTERM to a prefill worker with prompts: it sends their KV cache, and each stream is whole."""
    victim, failed = control.worker("prefill"), control.counted("decode", _FAILED_TRANSFERS)
    process = control.process(victim.name)
    received = 0.0

    def end() -> None:
        nonlocal received
        wait_until(lambda: control.counted(victim.name, "num_requests_running") > 0, "it computes a prompt")
        control.tell_to_end(victim)
        before = control.counted(victim.name, "request_success_total")
        received = control.counted("decode", _TRANSFERS)
        wait_until(
            lambda: control.counted(victim.name, "request_success_total") > before, "it finishes a prompt"
        )

    streams = stream_while(
        control.urls(), end, streams=24, words=50, prompt_words=3000, begun=1, begun_streams=1
    )
    assert all(each.is_whole for each in streams), streams
    assert control.counted("decode", _TRANSFERS) > received
    assert control.counted("decode", _FAILED_TRANSFERS) == failed
    wait_until(lambda: has_ended(process), "the worker ends")


def test_after_that_the_other_workers_serve(control: WorkerControl) -> None:
    """Both roles with a worker that ends: requests that come meanwhile are whole, at the other workers."""
    for role in ("prefill", "decode"):
        control.tell_to_end(control.worker(role))
    streams = stream_while(control.urls(), lambda: None, words=50, begun=1)
    assert all(each.is_whole for each in streams), streams
