"""Batch, near real time and the signal store in the picture, and what they call and write."""

from __future__ import annotations

from inference_blueprints.report.picture.blocks import (
    ARROW_GAP,
    Block,
    Card,
    Frame,
    Glyph,
    HorizontalStack,
    Style,
)
from inference_blueprints.report.picture.scene import Scene, counted
from inference_blueprints.serving.streaming.broker_load import topic_partitions
from inference_blueprints.serving.streaming.job_size import job_size
from inference_blueprints.spec.types import Batch, Kafka, SignalStore, StreamingJob

_BATCH = Style("#b8124f", fill="#fdf6f9")
_MAX_NAMES = 3


def batch_frame(batch: Batch) -> Block:
    """Return what accepts jobs and keeps their files: services outside the VPC."""
    queues = ", ".join(names([queue.name for queue in batch.queues]))
    cards = [
        Card("Batch API", ("private API Gateway, Lambda",), Glyph.ENDPOINT, "api"),
        Card("Queues", (queues, "Step Functions, SQS"), Glyph.QUEUE, "queues"),
        Card("Requests and answers", ("files in S3",), Glyph.BUCKET),
    ]
    return Frame("Batch", HorizontalStack(cards, gap=ARROW_GAP), _BATCH, anchor="batch")


def workers_row(batch: Batch, store: SignalStore | None) -> Block:
    """Return what sends the requests of jobs to the models, and what writes their answers to the store."""
    workers = batch.workers
    count = f"{workers.min}" if workers.min == workers.max else f"{workers.min} to {workers.max}"
    place = f"AWS Fargate, {workers.ecs.spot_percent} % Spot" if workers.ecs else "pods on system nodes"
    card = Card("Batch workers", (f"{count} per model", place), Glyph.CONTROLLER, "workers")
    if store is None:
        return card
    publisher = Card("Publisher", ("Lambda function",), Glyph.CONTROLLER, "publisher")
    return HorizontalStack([publisher, card], gap=ARROW_GAP)


def store_card(store: SignalStore) -> Card:
    """Return the signal store with the teams whose signals it holds."""
    teams = ", ".join(names(sorted({signal.team for signal in store.signals})))
    size = f"ElastiCache for Valkey, up to {store.valkey.max_gb:,} GB"
    return Card("Signal store", (size, f"signals of {teams}"), Glyph.BUCKET, "store")


def streaming_row(kafka: Kafka | None, jobs: list[StreamingJob]) -> Block:
    """Return Kafka with its topics, and the jobs that read them."""
    express = kafka.express if kafka else None
    brokers = (
        f"{express.brokers} Express brokers, {express.instance_type}" if express else "an existing cluster"
    )
    topics = ", ".join(names(sorted(topic_partitions(jobs))))
    size = counted(sum(job_size(job).kpus for job in jobs), "KPU")
    cards = [
        Card("Amazon MSK", (f"topics: {topics}", brokers), Glyph.QUEUE, "kafka"),
        Card(
            "Streaming jobs",
            (", ".join(names([job.name for job in jobs])), f"Managed Flink, {size}"),
            Glyph.CONTROLLER,
            "jobs",
        ),
    ]
    return HorizontalStack(cards, gap=ARROW_GAP)


def names(all_names: list[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    shown = all_names if len(all_names) <= _MAX_NAMES else all_names[: _MAX_NAMES - 1]
    more = len(all_names) - len(shown)
    return (*shown, f"and {more} more") if more else tuple(shown)


def batch_sentence(scene: Scene, batch: Batch) -> str:
    """Return how requests of jobs reach the models."""
    place = "on AWS Fargate" if batch.workers.ecs else "on the system nodes"
    shift = " Capacity shift gives them what real time leaves." if scene.blueprint.spec.capacity_shift else ""
    return f"Workers {place} call the models with the capacity that is free.{shift}"
