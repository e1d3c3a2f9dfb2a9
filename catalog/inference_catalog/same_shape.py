"""Models with the same layers, sizes and weights, which run at the same speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from inference_catalog.model import Model


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
