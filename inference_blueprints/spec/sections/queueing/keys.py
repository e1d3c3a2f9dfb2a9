"""Queueing: job queues on the pools, beside the models."""

from inference_blueprints.spec.section import Choice, Section


class Borrowing(Section):
    """Jobs may run on idle capacity of other pools with the same accelerator."""


class Kueue(Section):
    """Kueue with one queue per pool, for jobs in the models' namespace."""

    borrowing: Borrowing | None = None
    """Let jobs use idle capacity of other pools until the jobs of those pools need it."""


class Queueing(Choice):
    """Controller that admits jobs to the pools."""

    kueue: Kueue | None = None
    """Kueue. Each queue admits jobs to the capacity that the models leave in its pool."""
