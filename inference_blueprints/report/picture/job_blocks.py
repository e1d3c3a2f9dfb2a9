"""Batch, the signal store and near real time in the picture."""

from __future__ import annotations

from inference_blueprints.report.picture.blocks import Block, Card, Frame, Glyph, Style, grid
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.serving.streaming.broker_load import topic_partitions
from inference_blueprints.serving.streaming.job_size import job_size
from inference_blueprints.spec.types import Batch, ExpressKafka, SignalStore

_BATCH = Style("#c2185b", fill="#fdf6f9")
_MAX_NAMES = 3
_STREAMING = Style("#8c4fff", fill="#faf7ff")


def batch_frame(scene: Scene) -> Block | None:
    """Return the services of batch and of the signal store; None if the blueprint has neither.

    scene: The blueprint and its plan.
    """
    batch, store = scene.blueprint.spec.batch, scene.blueprint.spec.signal_store
    if batch is None:
        return None
    cards = [
        Card("Batch API", ("API Gateway, Lambda", "Step Functions runs jobs"), Glyph.ENDPOINT),
        Card("Queues", names([queue.name for queue in batch.queues]), Glyph.QUEUE),
        _workers(batch),
        *([store_card(store)] if store else []),
    ]
    return Frame("Batch", grid(cards, columns=2), _BATCH, note="the API is private", anchor="batch")


def teams_card(scene: Scene) -> Card:
    """Return who submits jobs."""
    return Card("Teams", names([team.name for team in scene.blueprint.spec.teams]), Glyph.ENGINEER, "teams")


def batch_sentence(scene: Scene, batch: Batch) -> str:
    """Return how a job runs."""
    place = "on AWS Fargate" if batch.workers.ecs else "on the system nodes"
    kept = " Answers with a key go to the signal store." if scene.blueprint.spec.signal_store else ""
    return (
        "Teams submit files of requests to the batch API; workers of batch "
        f"{place} take them from the queues and call the models with the capacity that is free.{kept}"
    )


def names(all_names: list[str]) -> tuple[str, ...]:
    """Return names as lines: the first ones, and how many more there are."""
    shown = all_names if len(all_names) <= _MAX_NAMES else all_names[: _MAX_NAMES - 1]
    more = len(all_names) - len(shown)
    return (*shown, f"and {more} more") if more else tuple(shown)


def _workers(batch: Batch) -> Card:
    workers = batch.workers
    count = f"{workers.min}" if workers.min == workers.max else f"{workers.min} to {workers.max}"
    if workers.ecs is None:
        return Card("Batch workers", (f"{count} per model", "pods on system nodes"), Glyph.CONTROLLER)
    spot = f"AWS Fargate, {workers.ecs.spot_percent} % Spot"
    return Card("Batch workers", (f"{count} per model", spot), Glyph.CONTROLLER)


def store_card(store: SignalStore) -> Card:
    """Return the signal store."""
    lines = ("ElastiCache for Valkey", f"up to {store.valkey.max_gb:,} GB")
    return Card("Signal store", lines, Glyph.BUCKET)


def streaming_frame(scene: Scene) -> Block | None:
    """Return the services of streaming; None if the blueprint has no streaming job."""
    spec = scene.blueprint.spec
    if not spec.streaming:
        return None
    kpus = sum(job_size(job).kpus for job in spec.streaming)
    counted = "1 KPU" if kpus == 1 else f"{kpus} KPUs"
    express = spec.kafka.express if spec.kafka else None
    jobs = names([job.name for job in spec.streaming])
    cards = [
        _kafka(express),
        Card("Topics", names(sorted(topic_partitions(spec.streaming))), Glyph.QUEUE),
        Card("Streaming jobs", (*jobs, f"Managed Flink, {counted}"), Glyph.CONTROLLER),
        # Batch shows the store in its own frame.
        *([store_card(spec.signal_store)] if spec.signal_store and spec.batch is None else []),
    ]
    return Frame("Near real time", grid(cards, columns=2), _STREAMING, anchor="streaming")


def events_card() -> Card:
    """Return who sends events."""
    return Card("Event sources", ("Kafka producers",), Glyph.APPLICATIONS, "events")


def streaming_sentence() -> str:
    """Return how an event becomes a signal."""
    return (
        "Applications send events to Kafka; streaming jobs turn each session's events into a prompt, call "
        "the model without waiting, and write the answer to the signal store."
    )


def _kafka(express: ExpressKafka | None) -> Card:
    if express is None:
        return Card("Kafka", ("existing MSK cluster",), Glyph.QUEUE)
    return Card("Kafka", (f"{express.brokers} Express brokers", express.instance_type), Glyph.QUEUE)
