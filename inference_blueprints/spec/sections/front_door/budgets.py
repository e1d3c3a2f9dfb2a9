"""Rules on prices and budgets of the front door."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.derived import behind_the_door
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import FrontDoorBudget, Rates, Spec
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_contracts.door_terms import NANO
from inference_contracts.errors import Finding
from inference_contracts.units import MILLION

_BUDGETS: Path = ("spec", "frontDoor", "budgets")
_SCOPES = ("team", "project", "key", "model")
_RATES = ("usdPerMillionInputTokens", "usdPerMillionOutputTokens")


@rule
def budgets_have_one_scope(spec: Spec) -> Iterator[Finding]:
    """Check that a budget of the front door limits exactly one thing."""
    for path, budget in _budgets(spec):
        given = list(_scopes(budget))
        if len(given) != 1:
            got = " and ".join(map(quote, given)) if given else "none of them"
            message = f"got {got}, expected exactly one of {', '.join(map(quote, _SCOPES))}; " + (
                "write a budget for each" if given else "add what it limits"
            )
            yield Finding(path, message)


@rule
def budgets_have_a_limit(spec: Spec) -> Iterator[Finding]:
    """Check that a budget of the front door limits something."""
    for path, budget in _budgets(spec):
        limits = (
            budget.usd_per_day,
            budget.usd_per_month,
            budget.requests_per_minute,
            budget.tokens_per_minute,
            budget.requests_at_once,
        )
        if all(limit is None for limit in limits):
            message = (
                "it has no limit; add 'usdPerDay', 'usdPerMonth', 'requestsPerMinute', 'tokensPerMinute' or "
                "'requestsAtOnce', or remove it"
            )
            yield Finding(path, message)


@rule
def requests_at_once_are_counted_before(spec: Spec) -> Iterator[Finding]:
    """Check that requests in progress are counted: with `after`, a request is known when it has ended."""
    for path, budget in _budgets(spec):
        if budget.requests_at_once is not None and budget.enforce == "after":
            message = (
                f"got {budget.requests_at_once}, but with 'enforce: after' a request is counted when it has "
                "ended; remove one of the two"
            )
            yield Finding((*path, "requestsAtOnce"), message)


@rule
def budgets_differ(spec: Spec) -> Iterator[Finding]:
    """Check that nothing has two budgets."""
    first: dict[tuple[str, str], int] = {}
    for path, budget in _budgets(spec):
        for scope, name in _scopes(budget).items():
            index = first.setdefault((scope, name), int(path[-1]))
            if index != path[-1]:
                message = (
                    f"got {quote(name)}, which spec.frontDoor.budgets[{index}] limits too; write all its "
                    "limits in one budget"
                )
                yield Finding((*path, scope), message)


@rule
def monthly_budgets_are_one_number(spec: Spec) -> Iterator[Finding]:
    """Check that the monthly budget of a team is one number, wherever the file states it."""
    monthly = {team.name: team.monthly_budget_usd for _, team in usable(spec.teams)}
    for path, budget in _budgets(spec):
        stated = monthly.get(budget.team) if budget.team else None
        if budget.usd_per_month is not None and stated is not None and stated != budget.usd_per_month:
            message = (
                f"got {budget.usd_per_month:.10g}, but 'monthlyBudgetUsd' of team {quote(budget.team)} is "
                f"{stated:.10g}, and both are the same limit; remove 'usdPerMonth', or make them equal"
            )
            yield Finding((*path, "usdPerMonth"), message)


@rule
def days_are_within_the_month(spec: Spec) -> Iterator[Finding]:
    """Warn of a limit of a day that the limit of the month is below."""
    monthly = {team.name: team.monthly_budget_usd for _, team in usable(spec.teams)}
    for path, budget in _budgets(spec):
        month = budget.usd_per_month or (monthly.get(budget.team) if budget.team else None)
        if budget.usd_per_day is not None and month is not None and budget.usd_per_day > month:
            message = (
                f"{budget.usd_per_day:.10g} US dollars per day are never reached: the limit of the month is "
                f"{month:.10g}; lower it, or remove it"
            )
            yield Finding((*path, "usdPerDay"), message, "warning")


@rule
def budgets_of_models_are_of_public_names(spec: Spec) -> Iterator[Finding]:
    """Check that a budget of a model names it as requests do."""
    door = spec.front_door
    if door is None:
        return
    public = {each.name: each for each in door.models}
    names = list(public) or [model.name for model in spec.models]
    for path, budget in _budgets(spec):
        if budget.model is None or budget.model in names:
            continue
        message = f"got {quote(budget.model)}, {allowed('public model', names)}"
        aliased = next((each.name for each in public.values() if budget.model in each.aliases), None)
        if aliased:
            message += f"; it is an alias of {quote(aliased)}, which you can name instead"
        yield Finding((*path, "model"), message + suggestion(budget.model, names))


@rule
def budgets_of_keys_need_keys(spec: Spec) -> Iterator[Finding]:
    """Check that a budget of keys has keys to limit."""
    for path, budget in _budgets(spec):
        if budget.key is not None and spec.front_door and spec.front_door.identity.api_keys is None:
            message = (
                f"got {quote(budget.key)}, but callers have no API keys; add 'apiKeys: {{}}' to "
                "frontDoor.identity, or limit a team or a project"
            )
            yield Finding((*path, "key"), message)


@rule
def models_of_the_door_have_prices(spec: Spec) -> Iterator[Finding]:
    """Check that each model behind the front door has prices: budgets limit US dollars."""
    # Teams pay for the calls of their streaming jobs, and jobs of batch have prices in any case.
    charged = behind_the_door(spec) | {job.model for _, job in usable(spec.streaming) if spec.front_door}
    for index, model in usable(spec.models):
        if model.name not in charged:
            continue
        path: Path = ("spec", "models", index)
        if model.rates is None:
            message = (
                "has no 'rates': budgets of the front door limit US dollars, so each of its requests needs a "
                "price; add 'rates: {usdPerMillionInputTokens: ..., usdPerMillionOutputTokens: ...}'"
            )
            yield Finding(path, message)
        elif model.makes_images and not model.rates.usd_per_million_output_tokens:
            message = (
                "got 0, but an image counts as output tokens, so all images would be free; state the price "
                "of a million of them (an image of 1024x1024 counts as 4,096)"
            )
            yield Finding((*path, "rates", _RATES[1]), message)


@rule
def prices_are_whole_nano_dollars(spec: Spec) -> Iterator[Finding]:
    """Check that a token behind the front door costs whole nano-dollars, so that sums are exact."""
    if spec.front_door is None:
        return
    stated: list[tuple[Path, Rates | None]]
    stated = [(("spec", "models", index), model.rates) for index, model in usable(spec.models)]
    queues = spec.batch.queues if spec.batch else []
    stated += [(("spec", "batch", "queues", index), queue.rates) for index, queue in usable(queues)]
    for path, rates in stated:
        if rates is None:
            continue
        prices = (rates.usd_per_million_input_tokens, rates.usd_per_million_output_tokens)
        for key, usd in zip(_RATES, prices, strict=True):
            nano = usd * NANO / MILLION
            if abs(nano - round(nano)) > 1e-6 * max(1.0, nano):
                message = (
                    f"got {usd:.10g}, which is {nano:.10g} nano-dollars a token; the ledger counts whole "
                    f"ones, so write a multiple of 0.001, such as {max(1, round(nano)) * MILLION / NANO:.10g}"
                )
                yield Finding((*path, "rates", key), message)


def _budgets(spec: Spec) -> Iterator[tuple[Path, FrontDoorBudget]]:
    for index, budget in usable(spec.front_door.budgets if spec.front_door else ()):
        yield (*_BUDGETS, index), budget


def _scopes(budget: FrontDoorBudget) -> dict[str, str]:
    """Return what a budget limits, by the key that names it."""
    return {key: name for key in _SCOPES if (name := getattr(budget, key)) is not None}
