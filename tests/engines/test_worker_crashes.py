"""Workers of the real engine are killed, stopped and told to end: each word of an answer arrives once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.engines.counting_blueprints import counting
from tests.engines.counting_client import SCHEMA, Stream, check_answers_with_a_schema, stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import running_engines
from tests.engines.worker_control import WorkerControl, family, has_ended, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(5400)]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerControl]:
    blueprint = counting("quickstart-g6e")
    with running_engines(blueprint, tmp_path_factory.mktemp("run"), CountingKind(blueprint)) as running:
        yield WorkerControl(running)


def unlike(streams: list[Stream]) -> list[Stream]:
    """Return the streams that are not whole."""
    return [each for each in streams if not each.is_whole]


def test_without_a_disturbance_each_word_arrives_once(control: WorkerControl) -> None:
    """Twelve streams over two frontends: each word arrives once, and nothing moves."""
    moved = control.migrations()
    assert not unlike(stream_while(control.urls(), lambda: None))
    assert control.migrations() == moved


def test_a_killed_worker_loses_and_doubles_no_word(control: WorkerControl) -> None:
    """A killed worker: its streams go on at another worker, and each word arrives once."""
    victim, moved = control.worker("worker"), control.migrations()
    streams = stream_while(control.urls(), lambda: control.kill(victim))
    assert not unlike(streams)
    assert control.migrations() > moved, "the worker that died had no streams"
    # Dynamo counts what a moved stream had already answered as part of its prompt.
    assert max(each.usage["prompt_tokens"] for each in streams) > 40
    assert {each.usage["completion_tokens"] for each in streams} == {600}
    assert not unlike(stream_while(control.urls(), lambda: None, words=50, begun=1))


def test_a_worker_whose_engine_dies_ends_and_its_streams_go_on(control: WorkerControl) -> None:
    """A killed EngineCore: its worker ends, its streams go on at another, and each word arrives once."""
    victim, moved = control.worker("worker"), control.migrations()
    process = control.process(victim.name)
    control.will_lose(victim)
    assert not unlike(stream_while(control.urls(), control.engine_core(victim).kill))
    assert control.migrations() > moved, "the worker that died had no streams"
    wait_until(lambda: has_ended(process), "the worker without an engine ends, so that it is replaced")


def test_a_worker_that_is_told_to_end_finishes_its_streams(control: WorkerControl) -> None:
    """SIGTERM to a worker: it finishes its streams in the plan's time, none moves, and it ends."""
    victim, moved = control.worker("worker"), control.migrations()
    process = control.process(victim.name)
    control.will_lose(victim)
    assert not unlike(stream_while(control.urls(), process.terminate))
    assert control.migrations() == moved, "streams were moved although there was time to finish them"
    wait_until(lambda: has_ended(process), "the worker ends")


def test_a_stopped_worker_delays_its_streams_and_loses_no_word(control: WorkerControl) -> None:
    """A worker that stands still for 20 seconds: its streams wait, and each word arrives once."""
    victim = control.worker("worker")
    stopped = family(control.process(victim.name))
    # Dynamo's file discovery never lists such a worker again (1.6.1).
    control.will_lose(victim)

    def pause() -> None:
        for each in stopped:
            each.suspend()
        time.sleep(20)  # longer than the registration of a silent worker lasts
        for each in stopped:
            each.resume()

    assert not unlike(stream_while(control.urls(), pause))


def test_an_answer_with_a_schema_ends_with_an_error_instead_of_a_second_beginning(
    control: WorkerControl,
) -> None:
    """A killed worker: streams with a JSON schema end with an error and never begin again."""
    victim = control.worker("worker")
    form = {"type": "json_schema", "json_schema": {"name": "two", "schema": SCHEMA}}
    streams = stream_while(
        control.urls(),
        lambda: control.kill(victim),
        words=900,
        begun=1,
        chat=True,
        response_format=form,
        ignore_eos=False,
    )
    check_answers_with_a_schema(streams)


def test_without_any_worker_a_client_is_told_at_once(control: WorkerControl) -> None:
    """Every worker killed: streams end with an error, and new requests are refused."""
    victims = control.workers("worker")

    def kill() -> None:
        for each in victims:
            control.kill(each)

    streams = stream_while(control.urls(), kill)
    for each in streams:
        assert json.loads(each.error)["code"] == 503
        assert each.is_beginning
        assert each.finish is None
    late = stream_while(control.urls(), lambda: None, words=50, begun=1)
    assert {each.status for each in late} <= {404, 503}
