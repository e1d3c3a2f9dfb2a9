"""A prefill or decode worker of the real engine dies while KV cache moves, or starts late."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.engines.counting_blueprints import disaggregated
from tests.engines.counting_client import stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import running_engines
from tests.engines.worker_control import WorkerControl

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]
_FAILED_TRANSFERS = "nixl_num_failed_transfers_total"
_TRANSFERS = "nixl_xfer_time_seconds_count"
_PROMPTS = ("num_requests_running", "num_requests_waiting")


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerControl]:
    blueprint = disaggregated(prefill=1, decode=2)
    with running_engines(blueprint, tmp_path_factory.mktemp("run"), CountingKind(blueprint)) as running:
        yield WorkerControl(running)


def test_streams_of_a_killed_decode_worker_go_on_at_the_other(control: WorkerControl) -> None:
    """A killed decode worker: its streams go on at another one, and each word arrives once."""
    victim, moved = control.worker("decode"), control.migrations()
    streams = stream_while(control.urls(), lambda: control.kill(victim))
    assert all(each.is_whole for each in streams), streams
    assert control.migrations() > moved, "the worker that died had no streams"


def test_streams_outlive_the_prefill_worker_that_began_them(control: WorkerControl) -> None:
    """A killed prefill worker: streams that have begun go on, and each word arrives once."""
    victim = control.worker("prefill")
    streams = stream_while(control.urls(), lambda: control.kill(victim))
    assert all(each.is_whole for each in streams), streams


def test_requests_that_come_without_a_prefill_worker_are_refused(control: WorkerControl) -> None:
    """Decode workers without a prefill worker: requests are refused at once, and answered once it is back."""
    victim = control.worker("prefill")
    control.kill(victim)
    for each in stream_while(control.urls(), lambda: None, words=50, begun=1):
        # 500 while the dead worker is still registered, and 503 after that.
        assert json.loads(each.error)["code"] in {500, 503}, each
        assert not each.text
    control.restore()
    assert all(each.is_whole for each in stream_while(control.urls(), lambda: None, words=50, begun=1))


def test_a_prefill_worker_killed_while_prompts_wait_for_it_leaves_no_call_hanging(
    control: WorkerControl,
) -> None:
    """A prefill worker killed between transfers of KV cache: no call hangs, and no wrong word arrives."""
    victim = control.worker("prefill")
    before = {name: control.counted("decode", name) for name in (_TRANSFERS, _FAILED_TRANSFERS)}
    waiting = moved = 0.0

    def kill() -> None:
        nonlocal waiting, moved
        moved = control.counted("decode", _TRANSFERS) - before[_TRANSFERS]
        waiting = sum(control.counted(victim.name, name) for name in _PROMPTS)
        control.kill(victim)

    streams = stream_while(
        control.urls(), kill, streams=32, words=50, prompt_words=3000, begun=1, begun_streams=1
    )
    assert waiting > 0, "the worker that died had no prompts"
    assert 0 < moved < len(streams), "no KV cache had moved, or that of every prompt"
    for each in streams:
        assert each.is_beginning, each
        assert each.is_whole or each.error or each.finish == "error", each
    # Without another prefill worker, only a prompt whose KV cache was read, or not read and then computed
    # again, has an answer: the others were lost with the worker.
    read = control.counted("decode", _TRANSFERS) - before[_TRANSFERS]
    computed = control.counted("decode", _FAILED_TRANSFERS) - before[_FAILED_TRANSFERS]
    assert sum(each.is_whole for each in streams) <= read + computed
    assert any(not each.is_whole for each in streams), "the worker died after its last prompt"
