"""Batch and the signal store in the picture."""

from __future__ import annotations

from inference_blueprints.report.picture import glyphs
from inference_blueprints.report.picture.blocks import Block, Card, Frame, Style, grid
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.spec.types import Batch, SignalStore

_BATCH = Style("#c2185b", fill="#fdf6f9")
_MOST_NAMES = 3


def batch_frame(scene: Scene) -> Block | None:
    """Return the services of batch and of the signal store; None if the blueprint has neither.

    Parameters
    ----------
    scene
        The blueprint and its plan.
    """
    batch, store = scene.blueprint.spec.batch, scene.blueprint.spec.signal_store
    if batch is None:
        return None
    cards = [
        Card("Batch API", ("API Gateway, Lambda", "Step Functions runs jobs"), glyphs.ENDPOINT),
        Card("Queues", names([queue.name for queue in batch.queues]), glyphs.QUEUE),
        _workers(batch),
        *([store_card(store)] if store else []),
    ]
    return Frame("Batch", grid(cards, columns=2), _BATCH, note="the API is private", anchor="batch")


def teams_card(scene: Scene) -> Card:
    """Return who submits jobs."""
    return Card("Teams", names([team.name for team in scene.blueprint.spec.teams]), glyphs.ENGINEER, "teams")


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
    shown = all_names if len(all_names) <= _MOST_NAMES else all_names[: _MOST_NAMES - 1]
    more = len(all_names) - len(shown)
    return (*shown, f"and {more} more") if more else tuple(shown)


def _workers(batch: Batch) -> Card:
    workers = batch.workers
    count = f"{workers.min}" if workers.min == workers.max else f"{workers.min} to {workers.max}"
    if workers.ecs is None:
        return Card("Batch workers", (f"{count} per model", "pods on system nodes"), glyphs.CONTROLLER)
    spot = f"AWS Fargate, {workers.ecs.spot_percent} % Spot"
    return Card("Batch workers", (f"{count} per model", spot), glyphs.CONTROLLER)


def store_card(store: SignalStore) -> Card:
    """Return the signal store."""
    lines = ("ElastiCache for Valkey", f"up to {store.valkey.max_gb:,} GB")
    return Card("Signal store", lines, glyphs.BUCKET)
