"""Workers of the real engine are told to end and have one second for their streams, which move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.counting_blueprints import counting, disaggregated, with_little_time
from tests.engines.counting_client import SCHEMA, check_answers_with_a_schema, stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import running_engines
from tests.engines.worker_control import WorkerControl, has_ended, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(5400)]
_SECONDS = 1
_LAYOUTS = {"worker": counting("quickstart-g6e"), "decode": disaggregated(prefill=2, decode=2)}


def _layouts(*roles: str) -> pytest.MarkDecorator:
    """Run a test on layouts, each known by the role whose workers answer."""
    return pytest.mark.parametrize("engines", roles, indirect=True, scope="module")


@pytest.fixture(scope="module")
def engines(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, WorkerControl]]:
    blueprint = with_little_time(_LAYOUTS[request.param], _SECONDS)
    with running_engines(blueprint, tmp_path_factory.mktemp("run"), CountingKind(blueprint)) as running:
        yield request.param, WorkerControl(running)


@pytest.fixture
def control(engines: tuple[str, WorkerControl]) -> Iterator[tuple[str, WorkerControl]]:
    yield engines
    engines[1].restore()


@_layouts("worker", "decode")
def test_streams_that_outlast_the_time_of_their_worker_move(control: tuple[str, WorkerControl]) -> None:
    """SIGTERM with one second for the streams: they move, each word arrives once, and there is no error."""
    role, platform = control
    victim, moved = platform.worker(role), platform.migrations()
    process = platform.process(victim.name)
    streams = stream_while(platform.urls(), lambda: platform.tell_to_end(victim), words=900)
    assert all(each.is_whole for each in streams), streams
    assert platform.migrations() > moved, "no stream outlasted the time of its worker"
    wait_until(lambda: has_ended(process), "the worker ends")


@_layouts("decode")
def test_prompts_that_outlast_the_time_of_their_prefill_worker(control: tuple[str, WorkerControl]) -> None:
    """SIGTERM with one second for prompts of a prefill worker: another computes them."""
    _, platform = control
    victim = platform.worker("prefill")
    process = platform.process(victim.name)

    def end() -> None:
        wait_until(lambda: platform.counted(victim.name, "num_requests_running") > 0, "it computes a prompt")
        platform.tell_to_end(victim)

    streams = stream_while(
        platform.urls(), end, streams=32, words=50, prompt_words=3000, begun=1, begun_streams=1
    )
    assert all(each.is_whole for each in streams), streams
    wait_until(lambda: has_ended(process), "the worker ends")


@_layouts("worker", "decode")
def test_a_stream_with_a_schema_ends_with_an_error(control: tuple[str, WorkerControl]) -> None:
    """SIGTERM with one second for streams with a JSON schema: they end with an error."""
    role, platform = control
    victim = platform.worker(role)
    streams = stream_while(
        platform.urls(),
        lambda: platform.tell_to_end(victim),
        words=900,
        begun=1,
        chat=True,
        response_format={"type": "json_schema", "json_schema": {"name": "one", "schema": SCHEMA}},
        ignore_eos=False,
    )
    check_answers_with_a_schema(streams)
