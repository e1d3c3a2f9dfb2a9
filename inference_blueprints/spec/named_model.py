"""The model that a user names with --model."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.spec.types import Model
from inference_contracts.errors import UserError


def named_model(models: Sequence[Model], name: str | None) -> tuple[int, str]:
    """Return the index of a model, and its name for requests: as the user names it.

    models: The blueprint's models, which answer to all of their names.
    name: Its own name or its public name. None if there is exactly one model; requests then have its public
        name if it has one, as those of its callers.
    Raises UserError if no model has this name, or if there are several models and no name is given.
    """
    if name is None and len(models) == 1:
        return 0, models[0].names[-1]
    for index, model in enumerate(models):
        if name in model.names:
            return index, name
    got = "--model is missing" if name is None else f"got --model {name}"
    raise UserError(f"{got}; allowed are {', '.join(each for model in models for each in model.names)}")
