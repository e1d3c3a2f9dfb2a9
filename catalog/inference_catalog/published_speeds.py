"""Speeds of engines on instance types that no latency profile covers, as others published them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from inference_catalog.entry_builder import build_entry
from inference_catalog.model import Model

# Models with the same layers, sizes and weights, which run at the same speed.


def same_shape(name: str, models: Mapping[str, Model]) -> tuple[str, ...]:
    """Return the models that have the shape of one, and that one first.

    Parameters
    ----------
    name
        Hugging Face id. Without an entry, the result has only this name.
    models
        Entries of the catalogue by name.
    """
    if name not in models:
        return (name,)
    shape = _without_words(models[name])
    others = (other for other, entry in models.items() if other != name and _without_words(entry) == shape)
    return (name, *others)


def _without_words(model: Model) -> Model:
    """Return the entry without what has no effect on its speed."""
    return replace(model, name="", answer_format=None, gated=False, licence="", source="")


_FILE = Path(__file__).resolve().parent / "data" / "published_speeds.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSpeed:
    """A speed that somebody measured and published. It is not a measurement of this library."""

    model: str
    """Hugging Face id."""
    same_shape_as: str | None
    """Entry of the model catalogue with the same layers and sizes, so that it runs at the same speed. None if
    there is no such entry, or if the model has an entry of its own."""
    instance_type: str
    """EC2 instance type; it need not be in the catalogue."""
    devices: int | None
    """Devices of the instance that took part, counted as in the catalogue; its processors are one device.
    None if the instance type is not in the catalogue."""
    engine: str
    """The blueprint's key of the engine."""
    quantization: str
    """Type of the weights, as the source names it."""
    concurrent_requests: int
    """Requests that were served at the same time."""
    least_tokens_per_second: float
    most_tokens_per_second: float | None
    """`least_tokens_per_second`, `most_tokens_per_second`: Smallest and largest generated tokens per second
    of all these requests together. The largest is None if the source states none."""
    conditions: str
    """What else the figure depends on."""
    date: str
    source: str
    """`date`, `source`: When and where it was published."""


@cache
def published_speeds() -> tuple[PublishedSpeed, ...]:
    """Return every published speed in the order of the file."""
    document = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(build_entry(PublishedSpeed, each, _FILE) for each in document["speeds"])
