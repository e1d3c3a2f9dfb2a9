"""Streaming in the picture: the Kafka cluster, the jobs, and the signal store."""

from __future__ import annotations

from inference_blueprints.report.picture import glyphs
from inference_blueprints.report.picture.batch_blocks import names, store_card
from inference_blueprints.report.picture.blocks import Block, Card, Frame, Style, grid
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.serving.streaming.job_size import job_size
from inference_blueprints.spec.types import ExpressKafka

_STREAMING = Style("#8c4fff", fill="#faf7ff")


def streaming_frame(scene: Scene) -> Block | None:
    """Return the services of streaming; None if the blueprint has no streaming job.

    Parameters
    ----------
    scene
        The blueprint and its plan.
    """
    spec = scene.blueprint.spec
    if not spec.streaming:
        return None
    kpus = sum(job_size(job).kpus for job in spec.streaming)
    counted = "1 KPU" if kpus == 1 else f"{kpus} KPUs"
    express = spec.kafka.express if spec.kafka else None
    jobs = names([job.name for job in spec.streaming])
    cards = [
        _kafka(express),
        Card("Topics", names(sorted({job.events.topic for job in spec.streaming})), glyphs.QUEUE),
        Card("Streaming jobs", (*jobs, f"Managed Flink, {counted}"), glyphs.CONTROLLER),
        # Batch shows the store in its own frame.
        *([store_card(spec.signal_store)] if spec.signal_store and spec.batch is None else []),
    ]
    return Frame("Near real time", grid(cards, columns=2), _STREAMING, anchor="streaming")


def events_card() -> Card:
    """Return who sends events."""
    return Card("Event sources", ("Kafka producers",), glyphs.APPLICATIONS, "events")


def streaming_sentence() -> str:
    """Return how an event becomes a signal."""
    return (
        "Applications send events to Kafka; streaming jobs turn each session's events into a prompt, call "
        "the model without waiting, and write the answer to the signal store."
    )


def _kafka(express: ExpressKafka | None) -> Card:
    if express is None:
        return Card("Kafka", ("existing MSK cluster",), glyphs.QUEUE)
    return Card("Kafka", (f"{express.brokers} Express brokers", express.instance_type), glyphs.QUEUE)
