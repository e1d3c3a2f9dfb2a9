"""Events of batch on the account's bus: a job asks for places, a job has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import boto3

SOURCE: Final = "inference-blueprints.batch"
#: A job waits for places.
ASKS: Final = "Batch Job Asks"
#: A job has ended.
ENDED: Final = "Batch Job State Change"


def tell(kind: str, detail: Mapping[str, Any]) -> None:
    """Put an event on the bus.

    Parameters
    ----------
    kind
        What has happened.
    detail
        To which job.

    Raises
    ------
    RuntimeError
        If the bus did not take it.
    """
    entry = {"Source": SOURCE, "DetailType": kind, "Detail": json.dumps(detail)}
    answer = boto3.client("events").put_events(Entries=[entry])
    if answer["FailedEntryCount"]:
        raise RuntimeError(f"the event was not taken: {answer['Entries']}")
