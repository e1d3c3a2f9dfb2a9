"""What a run of the front door tries: which teams ask for which models, and which limits are lower here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from inference_contracts.door_configuration import NANO, DoorBudget, DoorConfiguration, DoorModel
from inference_contracts.number_text import number
from inference_local.serving.platform_parts import Replacement

#: The budget that is reached has room for about so many requests.
REQUESTS_IN_BUDGET = 150
#: Words of a prompt, tokens that the chat template adds to it, and tokens of an answer, of such a request.
PROMPT_WORDS = 10
_TEMPLATE_TOKENS = 14
ANSWER_TOKENS = 25
#: Requests that a target answers at once here, so that a small load fills it.
_AT_ONCE = 20
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """A team that asks for a model."""

    team: str
    model: str
    """Its public name."""


@dataclass(frozen=True, slots=True)
class Spender:
    """A team whose budget is reached."""

    asked: Asked
    limit_nano: int
    """Its limit here, in nano-dollars."""
    is_daily: bool
    """Whether it is the limit of a day. Otherwise, of a month."""


@dataclass(frozen=True, slots=True)
class Shed:
    """Two public names of one target, with different priorities."""

    urgent: Asked
    low: Asked


@dataclass(frozen=True, slots=True)
class DoorScenario:
    """What a run tries."""

    configuration: DoorConfiguration
    """What the replicas are told here."""
    replacements: tuple[Replacement, ...]
    """Its differences from the plan."""
    steady: Asked
    """A team whose budget is not reached, and a model whose requests go to one target."""
    spender: Spender | None
    canary: Asked | None
    shed: Shed | None
    notes: tuple[str, ...]
    """What is not tried, with the reason."""


def door_scenario(configuration: DoorConfiguration) -> DoorScenario:
    """Return what can be tried with a configuration.

    configuration: That of the plan. It has at least one team, and a model that it may use.
    """
    spending = _spending_budget(configuration)
    others = [team.name for team in configuration.teams if spending is None or team.name != spending.name]
    pair = _shed_pair(configuration, others)
    canary = _canary(configuration, others)
    steady = _steady(configuration, others, pair)
    here = configuration
    replacements: list[Replacement] = []
    spender = None
    if spending is not None:
        spender, here, change = _lower_budget(here, spending)
        replacements += [change] if change else []
    if pair is not None:
        here, changes = _fill_soon(here, pair)
        replacements += changes
    notes = {
        "No budget was reached: of at least two teams, one needs a budget in US dollars that is enforced "
        "before.": spending is None,
        "No canary was tried: no model has two targets with a weight.": canary is None,
        "No request was refused for lack of room: no two public names with different priorities lead to one "
        "deployment alone.": pair is None,
    }
    return DoorScenario(
        here,
        tuple(replacements),
        steady,
        spender,
        canary,
        pair,
        tuple(text for text, is_so in notes.items() if is_so),
    )


def _models_of(configuration: DoorConfiguration, team: str) -> Iterator[DoorModel]:
    """Yield the models that a team may use."""
    for model in configuration.public_models:
        if model.teams is None or team in model.teams:
            yield model


def _spending_budget(configuration: DoorConfiguration) -> DoorBudget | None:
    """Return the smallest budget of a team in money. None if no team is left that sends the rest.

    A streaming job needs the whole budget of its team.
    """
    streams = {
        team for each in configuration.models if each.caller == "streaming" for team in each.teams or ()
    }
    if len(configuration.teams) == 1:
        return None
    found = [
        budget
        for budget in configuration.budgets
        if budget.scope == "team"
        and budget.enforce == "before"
        and budget.name not in streams
        and (budget.nano_per_day or budget.nano_per_month)
        and any(model.prices.output_token for model in _models_of(configuration, budget.name))
    ]
    return min(found, key=lambda each: each.nano_per_day or each.nano_per_month or 0, default=None)


def _lower_budget(
    configuration: DoorConfiguration, budget: DoorBudget
) -> tuple[Spender, DoorConfiguration, Replacement | None]:
    """Lower a budget to what a short load can spend."""
    model = next(each for each in _models_of(configuration, budget.name) if each.prices.output_token)
    prices = model.prices
    mean = (PROMPT_WORDS + _TEMPLATE_TOKENS) * prices.input_token + ANSWER_TOKENS * prices.output_token
    is_daily = budget.nano_per_day is not None
    planned = (budget.nano_per_day if is_daily else budget.nano_per_month) or 0
    limit = min(planned, REQUESTS_IN_BUDGET * mean)
    spender = Spender(Asked(budget.name, model.name), limit, is_daily)
    if limit == planned:
        return spender, configuration, None
    lowered = replace(budget, nano_per_day=limit) if is_daily else replace(budget, nano_per_month=limit)
    budgets = tuple(lowered if each is budget else each for each in configuration.budgets)
    change = Replacement(
        f"front door, budget of {budget.name}",
        "usdPerDay" if is_daily else "usdPerMonth",
        number(planned / NANO, _DIGITS),
        number(limit / NANO, _DIGITS),
        f"a short load reaches it: about {REQUESTS_IN_BUDGET} requests",
    )
    return spender, replace(configuration, budgets=budgets), change


def _canary(configuration: DoorConfiguration, teams: list[str]) -> Asked | None:
    for team in teams:
        for model in _models_of(configuration, team):
            if sum(target.weight > 0 for target in model.targets) > 1:
                return Asked(team, model.name)
    return None


def _shed_pair(configuration: DoorConfiguration, teams: list[str]) -> Shed | None:
    for team in teams:
        models = sorted(_models_of(configuration, team), key=lambda model: model.priority)
        for low in models:
            for urgent in reversed(models):
                alone = len(low.targets) == len(urgent.targets) == 1
                if (
                    alone
                    and low.targets[0].cluster == urgent.targets[0].cluster
                    and low.priority < urgent.priority
                ):
                    return Shed(Asked(team, urgent.name), Asked(team, low.name))
    return None


def _steady(configuration: DoorConfiguration, teams: list[str], pair: Shed | None) -> Asked:
    if pair is not None:
        return pair.urgent
    found = [Asked(team, model.name) for team in teams for model in _models_of(configuration, team)]
    by_targets = {model.name: len(model.targets) for model in configuration.public_models}
    return min(found, key=lambda asked: by_targets[asked.model])


def _fill_soon(
    configuration: DoorConfiguration, pair: Shed
) -> tuple[DoorConfiguration, tuple[Replacement, ...]]:
    """Let a few requests fill the target of a pair."""
    [target] = next(model for model in configuration.models if model.name == pair.low.model).targets
    if target.requests_at_once is not None and target.requests_at_once <= _AT_ONCE:
        return configuration, ()
    models = tuple(
        replace(
            model,
            targets=tuple(
                replace(each, requests_at_once=_AT_ONCE) if each.cluster == target.cluster else each
                for each in model.targets
            ),
        )
        for model in configuration.models
    )
    planned = "not set" if target.requests_at_once is None else str(target.requests_at_once)
    change = Replacement(
        f"front door, target {target.cluster}",
        "requests at once",
        planned,
        str(_AT_ONCE),
        "a small load fills it",
    )
    return replace(configuration, models=models), (change,)
