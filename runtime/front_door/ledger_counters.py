"""The counters that a request is charged to, and their limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from inference_contracts.door_configuration import BudgetScope, DoorBudget, DoorConfiguration

#: Stands for no limit in the scripts.
_NONE: Final = -1
#: Stands for each key, or each project of a team.
_EACH: Final = "*"


@dataclass(frozen=True, slots=True)
class CounterLimits:
    """Limits of a counter, in the order of the scripts."""

    nano_per_day: int = _NONE
    nano_per_month: int = _NONE
    requests_per_minute: int = _NONE
    tokens_per_minute: int = _NONE

    def as_words(self) -> tuple[int, int, int, int]:
        """Return them as words of a script."""
        return (self.nano_per_day, self.nano_per_month, self.requests_per_minute, self.tokens_per_minute)

    @property
    def are_none(self) -> bool:
        """Whether nothing is limited."""
        return self.as_words() == (_NONE,) * 4


NO_LIMITS: Final = CounterLimits()


@dataclass(frozen=True, slots=True)
class LedgerCounter:
    """A counter, and what limits it."""

    scope: BudgetScope
    name: str
    """Name of the team, ``team/project``, identifier of the key, or public name of the model."""
    key: str
    """Its key in the store."""
    before: CounterLimits
    """Limits that no request may pass."""
    after: CounterLimits
    """Limits that refuse once they have been passed."""


@dataclass(frozen=True, slots=True)
class Slot:
    """All counters of a request that lie in one slot of the store."""

    open_key: str
    """Hash of the open reservations."""
    counters: tuple[LedgerCounter, ...]

    @property
    def keys(self) -> list[str]:
        """Keys of a script."""
        return [self.open_key, *(counter.key for counter in self.counters)]


def team_tag(team: str) -> str:
    """Return what the keys of a team begin with."""
    return f"door:{{{team}}}"


def model_tag(model: str) -> str:
    """Return what the keys of a model begin with. No team has a slash in its name."""
    return f"door:{{/{model}}}"


class Budgets:
    """The budgets of a configuration, by what they limit."""

    def __init__(self, configuration: DoorConfiguration) -> None:
        self._limits: dict[tuple[BudgetScope, str], tuple[CounterLimits, CounterLimits]] = {}
        for scope, name in {(budget.scope, budget.name) for budget in configuration.budgets}:
            own = [each for each in configuration.budgets if (each.scope, each.name) == (scope, name)]
            self._limits[scope, name] = (
                _strictest(each for each in own if each.enforce == "before"),
                _strictest(each for each in own if each.enforce == "after"),
            )
        self._slots: dict[tuple[str, str | None, str | None], Slot] = {}
        self._models = {
            model.name: Slot(
                f"{model_tag(model.name)}:open",
                (self._counter("model", model.name, model_tag(model.name)),),
            )
            for model in configuration.models
            if ("model", model.name) in self._limits
        }

    def of_caller(self, team: str, project: str | None, key: str | None) -> Slot:
        """Return the counters of a caller: of its team, its key, and of its project if that has a budget.

        Teams and keys are counted without a budget too, so that one that is added later knows what was
        spent. Callers may invent projects, so those have a counter only with a budget.
        """
        found = self._slots.get((team, project, key))
        if found is None:
            tag = team_tag(team)
            counters = [self._counter("team", team, tag)]
            name = f"{team}/{project}"
            if (
                project is not None
                and {("project", name), ("project", f"{team}/{_EACH}")} & self._limits.keys()
            ):
                counters.append(self._counter("project", name, f"{tag}:p:{project}"))
            if key is not None:
                counters.append(self._counter("key", key, f"{tag}:k:{key}"))
            found = Slot(f"{tag}:open", tuple(counters))
            if len(self._slots) > _MOST_SLOTS:
                self._slots.clear()
            self._slots[team, project, key] = found
        return found

    def of_model(self, model: str) -> Slot | None:
        """Return the counter of a model. None if it has no budget."""
        return self._models.get(model)

    def _counter(self, scope: BudgetScope, name: str, key: str) -> LedgerCounter:
        each = f"{name.partition('/')[0]}/{_EACH}" if scope == "project" else _EACH
        own, general = self._limits.get((scope, name)), self._limits.get((scope, each))
        before, after = own or general or (NO_LIMITS, NO_LIMITS)
        return LedgerCounter(scope, name, key, before, after)


#: Callers may name projects, so what is remembered of them has a bound.
_MOST_SLOTS: Final = 50_000


def _strictest(budgets: Iterable[DoorBudget]) -> CounterLimits:
    rows = [
        (each.nano_per_day, each.nano_per_month, each.requests_per_minute, each.tokens_per_minute)
        for each in budgets
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    return CounterLimits(
        *(min((limit for limit in column if limit is not None), default=_NONE) for column in columns)
    )
