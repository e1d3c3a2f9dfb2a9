"""The function `publish` of the state machine: writes the answers of a part to the signal store.

=========================== ========================================================================
Variable                    Meaning
=========================== ========================================================================
``BATCH_BUCKET``            the batch bucket
``SIGNALS_HISTORY_BUCKET``  bucket of the history (`inference_contracts.signal_rows`)
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
from inference_contracts import batch_names
from signals.connection import connect
from signals.store import SignalWriter


@cache
def _publisher() -> Publisher:
    """Return the publisher of this process."""
    store = SignalWriter(connect(os.environ))
    return Publisher(
        store,
        Objects(os.environ[batch_names.BUCKET]),
        Objects(os.environ[batch_names.SIGNALS_HISTORY_BUCKET]),
    )


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Publish the answers of a part.

    event: ``{"job": …, "part": …}``.
    Returns: Counts: ``written``, ``superseded``, ``unfit``.
    """
    return asdict(_publisher().publish(event["job"], event["part"]))
