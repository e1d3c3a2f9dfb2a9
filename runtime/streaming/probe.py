"""The function `streaming.probe.handle`: sends an event and waits for its signal.

It shows that the whole way works: topic, job, model, signal store. The session of the event is the probe's
own, so no other session changes. Its signal expires as every other.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from inference_contracts.streaming_job import StreamingJobConfiguration
from signals.connection import INTERACTIVE_TIMEOUTS
from signals.reading import SignalReader, open_reader
from streaming.job_topics import TopicWriter, event_writer, job_configuration, store_address

#: What the keys of probes begin with.
PROBE_PREFIX: Final = "blueprints-probe-"
_LOOK_SECONDS: Final = 0.05


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Send an event and wait.

    event: ``{"event": {...}, "waitSeconds": 60}``: an event as the application sends it. Its key, time and
        identifier are replaced.
    Returns: ``session``; ``milliseconds`` and ``value``, which are None if no signal came in time.
    """
    job = job_configuration()
    writer = event_writer(job.kafka)
    try:
        with open_reader(store_address(job.signal.store), INTERACTIVE_TIMEOUTS) as reader:
            return send_probe(job, writer, reader, event["event"], float(event["waitSeconds"]))
    finally:
        writer.close()


def send_probe(
    job: StreamingJobConfiguration,
    writer: TopicWriter,
    reader: SignalReader,
    example: Mapping[str, Any],
    wait_seconds: float,
) -> dict[str, Any]:
    """Send an event of a new session and wait for its signal.

    writer, reader: Its topic of events, and the signal store.
    example: An event, whose key, time and identifier are replaced.
    wait_seconds: Seconds to wait for the signal.
    """
    session = f"{PROBE_PREFIX}{uuid.uuid4()}"
    fields: dict[str, Any] = {**example, job.session.key: session, job.session.time: int(time.time() * 1000)}
    if job.session.id:
        fields[job.session.id] = session
    started = time.monotonic()
    writer.write(json.dumps(fields).encode(), session.encode())
    while (waited := time.monotonic() - started) < wait_seconds:
        record = reader.get(job.signal.name, session)
        if record is not None:
            return {"session": session, "milliseconds": round(waited * 1000), "value": record.value}
        time.sleep(_LOOK_SECONDS)
    return {"session": session, "milliseconds": None, "value": None}
