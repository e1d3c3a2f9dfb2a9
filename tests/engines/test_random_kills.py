"""Random workers of both roles are killed at random moments, while clients count the words of their streams.

Each run draws a seed and prints it. ``KILLS_SEED=NUMBER`` repeats the kills of a run after as many words.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.engines.counting_blueprints import disaggregated
from tests.engines.counting_client import Stream, stream_while
from tests.engines.counting_kind import CountingKind
from tests.engines.running import running_engines
from tests.engines.worker_control import WorkerControl, has_ended, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

_SEED = int(os.environ.get("KILLS_SEED") or secrets.randbelow(10**6))
_ROUNDS = 6
_WORKERS = 2
#: Answers of a prompt whose prefill worker dies (docs/serving.md, "If a process dies or is told to end").
_REFUSALS = {500, 503}


@dataclass(frozen=True, slots=True)
class Kill:
    """What is killed, how, and when."""

    role: str
    index: int
    """`role`, `index`: The worker."""
    engine_only: bool
    """Whether its EngineCore gets the signal, and not the worker."""
    number: signal.Signals
    streams: int
    words: int
    prompt_words: int
    chat: bool
    """`streams`, `words`, `prompt_words`, `chat`: The streams that run."""
    begun: int
    begun_streams: int
    """`begun`, `begun_streams`: It is killed once so many words of so many streams have arrived."""

    @property
    def loses_prompts(self) -> bool:
        """Whether prompts may be lost: only those of a prefill worker without the time to finish them."""
        return self.role == "prefill" and (self.engine_only or self.number is signal.SIGKILL)


def drawn(seed: int, number: int) -> Kill:
    """Return the kill of a round."""
    choose = random.Random(f"{seed} {number}")  # noqa: S311 -- a sequence that repeats
    streams, words = choose.randint(8, 20), choose.randint(200, 600)
    return Kill(
        role=choose.choice(["prefill", "decode"]),
        index=choose.randrange(_WORKERS),
        engine_only=choose.random() < 0.3,
        number=choose.choice([signal.SIGKILL, signal.SIGTERM]),
        streams=streams,
        words=words,
        prompt_words=choose.choice([40, 1000, 3000]),
        chat=choose.random() < 0.5,
        begun=choose.randint(1, words // 2),
        begun_streams=choose.randint(1, streams),
    )


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerControl]:
    blueprint = disaggregated(prefill=_WORKERS, decode=_WORKERS)
    with running_engines(blueprint, tmp_path_factory.mktemp("run"), CountingKind(blueprint)) as running:
        yield WorkerControl(running)


def is_refused(stream: Stream) -> bool:
    """Return whether a stream ended with one of the errors that the documentation names."""
    if stream.error:
        return not stream.broken and json.loads(stream.error)["code"] in _REFUSALS
    return stream.finish == "error"


@pytest.mark.parametrize("number", range(1, _ROUNDS + 1))
def test_a_random_kill_loses_and_doubles_no_word(control: WorkerControl, number: int) -> None:
    """A random worker or its EngineCore dies: each word arrives once, or right words and a named error."""
    kill = drawn(_SEED, number)
    told = f"round {number}, repeat with KILLS_SEED={_SEED}: {kill}"
    print(told)
    victim = control.workers(kill.role)[kill.index]
    process = control.process(victim.name)

    def disturb() -> None:
        if kill.engine_only:
            control.will_lose(victim)
            control.engine_core(victim).send_signal(kill.number)
        elif kill.number is signal.SIGKILL:
            control.kill(victim)
        else:
            control.tell_to_end(victim)

    streams = stream_while(
        control.urls(),
        disturb,
        streams=kill.streams,
        words=kill.words,
        prompt_words=kill.prompt_words,
        chat=kill.chat,
        begun=kill.begun,
        begun_streams=kill.begun_streams,
    )
    for each in streams:
        assert each.is_beginning, (told, each)
        assert each.is_whole or (kill.loses_prompts and is_refused(each)), (told, each)
    wait_until(lambda: has_ended(process), f"{told}: the worker ends")
    control.restore()
    again = stream_while(control.urls(), lambda: None, words=50, begun=1)
    assert all(each.is_whole for each in again), (told, again)
