"""Sends batch events to the account's event bus: a job asks for places, or has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import boto3

from inference_contracts.batch_names import EVENT_SOURCE


def tell(kind: str, detail: Mapping[str, Any]) -> None:
    """Put an event on the bus. Raises RuntimeError if the bus rejects the event."""
    entry = {"Source": EVENT_SOURCE, "DetailType": kind, "Detail": json.dumps(detail)}
    answer = boto3.client("events").put_events(Entries=[entry])
    if answer["FailedEntryCount"]:
        raise RuntimeError(f"the event bus rejected the event: {answer['Entries']}")
