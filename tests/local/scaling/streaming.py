"""Streams of the tests whose workers come and go."""

from __future__ import annotations

from inference_local.scaling import ending_workers
from inference_local.scaling.counted_load import StreamLengths
from inference_local.scaling.ending_workers import Disturbance, Streamed
from inference_local.serving.local_serving import LocalServing

# Longest time of one stream. It bounds a hang, not a speed.
_STREAM_SECONDS = 240.0


def stream_while(
    running: LocalServing, disturb: Disturbance, *, clients: int = 12, answers: tuple[int, int] = (20, 60)
) -> Streamed:
    """Stream from every frontend of a platform while something happens to its workers."""
    lengths = StreamLengths((50, 400), answers)
    return ending_workers.stream_while(
        running, disturb, lengths, clients=clients, timeout_seconds=_STREAM_SECONDS
    )
