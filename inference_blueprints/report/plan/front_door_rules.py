"""What the front door allows: who may call, which models, and how much: records and tables of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.types import FrontDoor
from inference_contracts.door_configuration import NANO, DoorBudget, DoorModel
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import MILLION


@dataclass(frozen=True, slots=True)
class DoorTargetSummary:
    """A deployment that answers requests of a public model."""

    deployment: str
    """Its model and name."""
    share: float
    """Share of the conversations, from 0 to 1. With 0, only those for which the others have no room."""
    requests_at_once: int | None
    """Requests that its workers answer at once within the objectives. None if unknown: it has room always."""


@dataclass(frozen=True, slots=True)
class DoorModelSummary:
    """A model under its public name."""

    name: str
    aliases: tuple[str, ...]
    targets: tuple[DoorTargetSummary, ...]
    teams: tuple[str, ...] | None
    """`name`, `aliases`, `targets`, `teams`: Its names, its deployments, and who may use it; None for all."""
    priority: int
    context_length: int
    default_output_tokens: int
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    usd_per_image: float
    """`priority`, `context_length`, `default_output_tokens`, `usd_per_million_input_tokens`,
    `usd_per_million_output_tokens`, `usd_per_image`: As the policy process is told."""


@dataclass(frozen=True, slots=True)
class DoorBudgetSummary:
    """A limit."""

    scope: str
    name: str
    usd_per_day: float | None
    usd_per_month: float | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    requests_at_once: int | None
    enforce: str
    """`scope`, `name`, `usd_per_day`, `usd_per_month`, `requests_per_minute`, `tokens_per_minute`,
    `requests_at_once`, `enforce`: What is limited, the limits, and when they refuse. The monthly budgets of
    teams are among them."""


@dataclass(frozen=True, slots=True)
class DoorCallersSummary:
    """A way in which callers identify themselves."""

    way: str
    """``apiKeys``, ``iam`` or ``oidc``."""
    issuer: str
    audience: str
    """`issuer`, `audience`: What their tokens must have. Empty for API keys."""
    key_set: str
    """Address of the issuer's keys, or ``inline``."""
    team_claim: str
    """Claim that says which team a caller belongs to; for `iam`, its ARN. Empty for API keys: a key is of one
    team."""


def door_callers(door: FrontDoor, plan: DoorPlan) -> Iterator[DoorCallersSummary]:
    """Yield the ways in which callers identify themselves."""
    if door.identity.api_keys:
        yield DoorCallersSummary("apiKeys", "", "", "", "")
    for issuer, keys in zip(plan.configuration.issuers, plan.key_sets, strict=True):
        yield DoorCallersSummary(
            way="iam" if issuer.is_sts else "oidc",
            issuer=issuer.issuer,
            audience=issuer.audience,
            key_set=keys.url or "inline",
            team_claim=issuer.team_claim,
        )


def door_model(plan: DoorPlan, model: DoorModel) -> DoorModelSummary:
    """Return a model under its public name."""
    names = {each.name: f"{each.model}/{each.deployment}" for each in plan.clusters}
    whole = sum(target.weight for target in model.targets)
    return DoorModelSummary(
        name=model.name,
        aliases=model.aliases,
        targets=tuple(
            DoorTargetSummary(names[each.cluster], each.weight / whole, each.requests_at_once)
            for each in model.targets
        ),
        teams=model.teams,
        priority=model.priority,
        context_length=model.context_length,
        default_output_tokens=model.default_output_tokens,
        usd_per_million_input_tokens=model.prices.input_token * MILLION / NANO,
        usd_per_million_output_tokens=model.prices.output_token * MILLION / NANO,
        usd_per_image=model.prices.image / NANO,
    )


def door_budget(budget: DoorBudget) -> DoorBudgetSummary:
    """Return a limit."""
    return DoorBudgetSummary(
        scope=budget.scope,
        name=budget.name,
        usd_per_day=_usd(budget.nano_per_day),
        usd_per_month=_usd(budget.nano_per_month),
        requests_per_minute=budget.requests_per_minute,
        tokens_per_minute=budget.tokens_per_minute,
        requests_at_once=budget.requests_at_once,
        enforce=budget.enforce,
    )


def _usd(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO


def models_table(models: Iterable[DoorModelSummary]) -> TextTable:
    """Return the table of the public models."""
    return TextTable(
        "Models of the front door",
        ("name", "aliases", "answered by", "teams"),
        (
            "priority",
            "context, tokens",
            "longest answer if none is stated, tokens",
            "USD per million tokens in",
            "USD per million tokens out",
        ),
        tuple(map(_model_row, models)),
        (
            "A conversation stays at one deployment. Those without a share get requests for which the others "
            "have no room; requests of the lowest priority are refused first.",
        ),
    )


def _model_row(model: DoorModelSummary) -> tuple[str, ...]:
    return (
        model.name,
        ", ".join(model.aliases) or "-",
        ", ".join(f"{each.deployment} {number(each.share, 3)}" for each in model.targets),
        "all" if model.teams is None else ", ".join(model.teams),
        str(model.priority),
        f"{model.context_length:,}",
        f"{model.default_output_tokens:,}",
        f"{model.usd_per_million_input_tokens:g}",
        f"{model.usd_per_million_output_tokens:g}"
        + (f" ({model.usd_per_image:g} per image)" if model.usd_per_image else ""),
    )


def callers_table(callers: Iterable[DoorCallersSummary]) -> TextTable:
    """Return the table of ways in which callers identify themselves."""
    return TextTable(
        "Callers of the front door",
        ("identity", "issuer", "audience", "keys of the issuer", "team"),
        (),
        tuple(
            (each.way, each.issuer or "-", each.audience or "-", each.key_set or "-", _team(each))
            for each in callers
        ),
        (),
    )


def _team(callers: DoorCallersSummary) -> str:
    if not callers.team_claim:
        return "of the key"
    return f"claim {callers.team_claim}" + (", among 'principals'" if callers.way == "iam" else "")


def budgets_table(budgets: Iterable[DoorBudgetSummary]) -> TextTable:
    """Return the table of budgets."""
    return TextTable(
        "Budgets of the front door",
        ("scope", "of"),
        (
            *("USD per day", "USD per month", "requests per minute", "tokens per minute"),
            *("requests at once", "enforced"),
        ),
        tuple(
            (
                each.scope,
                "each" if each.name == "*" else each.name,
                _limit(each.usd_per_day),
                _limit(each.usd_per_month),
                _limit(each.requests_per_minute),
                _limit(each.tokens_per_minute),
                _limit(each.requests_at_once),
                f"{each.enforce} the request" if each.enforce == "before" else "after it is passed",
            )
            for each in budgets
        ),
        ("'monthlyBudgetUsd' of a team is its limit of the month, for requests and jobs together.",),
    )


def _limit(value: float | None) -> str:
    return "-" if value is None else f"{value:,.10g}"
