"""Speeds of engines on instance types that no latency profile covers, as others published them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inference_catalog.entry_builder import build_entry

_FILE = Path(__file__).resolve().parent / "data" / "published_speeds.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSpeed:
    """A speed that somebody measured and published. It is not a measurement of this library.

    Parameters
    ----------
    model
        Hugging Face id.
    same_shape_as
        Entry of the model catalogue with the same layers and sizes, so that it runs at the same speed. None
        if there is no such entry, or if the model has an entry of its own.
    instance_type
        EC2 instance type; it need not be in the catalogue.
    devices
        Devices of the instance that took part, counted as in the catalogue; its processors are one device.
        None if the instance type is not in the catalogue.
    engine
        The blueprint's key of the engine.
    quantization
        Type of the weights, as the source names it.
    concurrent_requests
        Requests that were served at the same time.
    least_tokens_per_second, most_tokens_per_second
        Smallest and largest generated tokens per second of all these requests together. The largest is None
        if the source states none.
    conditions
        What else the figure depends on.
    date, source
        When and where it was published.
    """

    model: str
    same_shape_as: str | None
    instance_type: str
    devices: int | None
    engine: str
    quantization: str
    concurrent_requests: int
    least_tokens_per_second: float
    most_tokens_per_second: float | None
    conditions: str
    date: str
    source: str


@cache
def published_speeds() -> tuple[PublishedSpeed, ...]:
    """Return every published speed in the order of the file."""
    document = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(build_entry(PublishedSpeed, each, _FILE) for each in document["speeds"])
