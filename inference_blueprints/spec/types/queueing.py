"""Queueing: what lets jobs of one's own onto the pools, beside the models."""

from __future__ import annotations

from inference_blueprints.spec.types.section import Choice, Section


class Borrowing(Section):
    """Jobs may run on other pools of the same kind of accelerator while these have room."""


class Kueue(Section):
    """Kueue with a queue a pool, for jobs in the models' namespace."""

    borrowing: Borrowing | None = None
    """Let a queue's jobs run on what other pools have idle, until jobs of those want it back."""


class Queueing(Choice):
    """What lets jobs onto the pools."""

    kueue: Kueue | None = None
    """Kueue: each queue admits what the models leave of its pool."""
