"""The function `publish` of the state machine: brings the answers of a part into the signal store.

=========================== ========================================================================
Variable                    Meaning
=========================== ========================================================================
``BATCH_BUCKET``            the batch bucket
``SIGNALS_HISTORY_BUCKET``  bucket of the history (`batch.contracts.publication`)
``SIGNALS_…``               how the store is reached (`signals.connection`)
=========================== ========================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from batch.objects import Objects
from batch.publication.publishing import Publisher
from signals.connection import connect
from signals.store import SignalStore


@cache
def _publisher() -> Publisher:
    """Return what publishes; one for all events of a process."""
    store = SignalStore(connect(os.environ))
    return Publisher(
        store, Objects(os.environ["BATCH_BUCKET"]), Objects(os.environ["SIGNALS_HISTORY_BUCKET"])
    )


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Publish the answers of a part.

    Parameters
    ----------
    event
        ``{"job": …, "part": …}``.

    Returns
    -------
    dict
        What became of them: ``written``, ``superseded``, ``unfit``.
    """
    return asdict(_publisher().publish(event["job"], event["part"]))
