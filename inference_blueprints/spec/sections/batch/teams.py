"""Rules on who submits jobs, and at which prices."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding


@rule
def teams_have_principals(spec: Spec) -> Iterator[Finding]:
    """Check that teams have the IAM principals by which batch and signals know them."""
    users = [name for name, section in (("batch", spec.batch), ("signalStore", spec.signal_store)) if section]
    if spec.front_door and not users:
        return
    for index, team in usable(spec.teams):
        if not team.principals:
            path: Path = ("spec", "teams", index, "principals")
            message = (
                f"is missing: {listing(users or ['batch'])} knows a team by its IAM roles and users; add at "
                "least one ARN"
            )
            yield Finding(path, message)


@rule
def queues_have_prices(spec: Spec) -> Iterator[Finding]:
    """Check that a queue has prices, and that they are those of its model: there is one price list."""
    rates = {model.name: model.rates for _, model in usable(spec.models)}
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        path: Path = ("spec", "batch", "queues", index)
        own = rates.get(queue.model)
        if queue.rates is None and own is None and queue.model in rates:
            message = (
                f"has no 'rates', and model {quote(queue.model)} has none either; add 'rates: "
                "{usdPerMillionInputTokens: ..., usdPerMillionOutputTokens: ...}' to the model"
            )
            yield Finding(path, message)
        elif queue.rates is not None and own is not None and queue.rates != own:
            message = (
                f"got other prices than model {quote(queue.model)} has under its own 'rates', and a request "
                "has one price; remove these, or make them equal"
            )
            yield Finding((*path, "rates"), message)
