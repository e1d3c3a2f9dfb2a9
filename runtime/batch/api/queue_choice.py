"""Chooses the queue of a job, for which the OpenAI API has no field."""

from __future__ import annotations

import json
from collections.abc import Callable

from batch.jobs.fields import Fields
from inference_contracts.batch_configuration import Configuration, Queue

#: Bytes of a file that are read to find its model. A longer first line does not tell the model.
BEGINNING_BYTES = 2**20


def choose_queue(options: Fields, configuration: Configuration, read_beginning: Callable[[], bytes]) -> Queue:
    """Return the queue that a job names, or the only one that fits.

    On an error, note it and return any queue.

    read_beginning: Reads the first bytes of the job's file.
    """
    names = [queue.name for queue in configuration.queues]
    named = configuration.queue(options.text("queue", default="", choices=names))
    if named is not None or options.problems:
        return named or configuration.queues[0]
    if len(names) == 1:
        return configuration.queues[0]
    model = _model(read_beginning())
    meant = [queue for queue in configuration.queues if queue.model == model]
    if len(meant) == 1:
        return meant[0]
    options.wrong(
        "queue",
        f"is missing: the first line asks for model {json.dumps(model)}, which {len(meant)} queues serve; "
        f"name one of {', '.join(names)}",
        code="missing_required_parameter",
    )
    return configuration.queues[0]


def _model(beginning: bytes) -> str | None:
    """Return the model that the first line of a file asks for; None if it cannot be determined."""
    try:
        body = json.loads(beginning.partition(b"\n")[0])["body"]
        model = body["model"]
    except (ValueError, RecursionError, TypeError, LookupError):
        return None
    return model if isinstance(model, str) else None
