"""The load of a streaming job, from the events that the blueprint states.

In flight are as many calls as start during the mean time of a call: calls per second x seconds per call
(J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961). The same law
gives the open sessions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from inference_blueprints.spec.types import StreamingJob
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.units import MILLISECONDS_PER_SECOND

#: Kafka's record and its share of a batch, without headers:
#: https://kafka.apache.org/documentation/#recordbatch
_BYTES_BESIDE_AN_EVENT: Final = 70
#: Key, fields and overhead of a hash in Valkey, and what a record of a signal has beside its value.
_BYTES_BESIDE_A_SIGNAL: Final = 500
#: Fields of a session's state beside its events and its prompt.
_BYTES_BESIDE_A_SESSION: Final = 300


@dataclass(frozen=True, slots=True)
class StreamLoadFigures:
    """What a job has to carry in the busiest minute."""

    events_per_second: float
    sessions_per_second: float
    """Sessions that begin."""
    open_sessions: float
    """Sessions in the job's state."""
    calls_per_second: float
    """Calls to the model: one for each version of a session's prompt."""
    in_flight: float
    """Mean number of calls that wait for their answer."""
    event_bytes: float
    """Mean size of an event in Kafka."""
    ingress_bytes_per_second: float
    """Bytes that arrive in the topic."""
    state_bytes: float
    """State of all open sessions, which is the size of a full checkpoint."""
    stored_signals: float
    """Signals in the store that have not expired."""
    signal_bytes: float
    """Their size."""
    prompt_characters: int
    """Longest prompt."""


def stream_load(job: StreamingJob) -> StreamLoadFigures:
    """Return the load of a job.

    job: The job in the blueprint.
    """
    load, session = job.load, job.session
    events, sessions = load.events_per_second, load.events_per_second / load.events_per_session
    event_bytes = sum(map(_size, job.events.examples)) / len(job.events.examples)
    # A session is kept while events arrive, and until the gap after the last one.
    open_sessions = sessions * (load.session_seconds + session.gap_seconds)
    # A timer starts with the first event after a prompt, and the events until it ends share a prompt. If
    # events arrive at random, a prompt holds 1 + (events of a session per second) x (time) of them.
    rate = load.events_per_session / load.session_seconds
    calls = events / (1 + rate * session.debounce_millis / MILLISECONDS_PER_SECOND)
    prompt_characters = job.prompt.max_input_tokens * BYTES_PER_TOKEN
    kept = min(load.events_per_session, session.max_events)
    # The state holds the kept events and the prompt with their texts. On average, half of a session is over.
    session_bytes = _BYTES_BESIDE_A_SESSION + min(
        2 * kept * event_bytes, kept * event_bytes + prompt_characters
    )
    stored = sessions * (job.signal.ttl_seconds + load.session_seconds)
    return StreamLoadFigures(
        events_per_second=events,
        sessions_per_second=sessions,
        open_sessions=open_sessions,
        calls_per_second=calls,
        in_flight=calls * load.latency_millis / MILLISECONDS_PER_SECOND,
        event_bytes=event_bytes,
        ingress_bytes_per_second=events * (event_bytes + _BYTES_BESIDE_AN_EVENT),
        state_bytes=open_sessions * session_bytes,
        stored_signals=stored,
        signal_bytes=stored * (job.answer.max_tokens * BYTES_PER_TOKEN + _BYTES_BESIDE_A_SIGNAL),
        prompt_characters=prompt_characters,
    )


def _size(event: object) -> int:
    # A value that does not fit the types has no length.
    return len(json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=len).encode())
