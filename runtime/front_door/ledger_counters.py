"""The counters that a request is charged to, and their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inference_contracts.door_configuration import BudgetScope, DoorBudget, DoorConfiguration
from inference_contracts.door_ledger import model_tag, team_tag

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
    requests_at_once: int = _NONE

    def as_words(self) -> tuple[int, int, int, int, int]:
        """Return them as words of a script."""
        money, minute = (self.nano_per_day, self.nano_per_month), (self.requests_per_minute,)
        return (*money, *minute, self.tokens_per_minute, self.requests_at_once)

    @property
    def are_none(self) -> bool:
        """Whether nothing is limited."""
        return self.as_words() == (_NONE,) * 5

    def stricter(self, other: CounterLimits) -> CounterLimits:
        """Return the smaller of each limit."""
        pairs = zip(self.as_words(), other.as_words(), strict=True)
        return CounterLimits(*(max(pair) if _NONE in pair else min(pair) for pair in pairs))


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

    @property
    def is_limited(self) -> bool:
        """Whether anything limits it."""
        return not (self.before.are_none and self.after.are_none)


@dataclass(frozen=True, slots=True)
class LedgerSlot:
    """All counters of a request that lie in one slot of the store."""

    tag: str
    """What all its keys begin with."""
    counters: tuple[LedgerCounter, ...]
    """The first is that of the team, or of the model."""
    keys: list[str]
    """Keys of a script: the hash of open reservations, the set of changed counters, and the counters."""
    limits: list[int]
    """Limits of the script that reserves."""
    reserves: bool
    """Whether a limit has to be asked for before a request. Else it is counted when it has ended."""
    refusing_after: tuple[LedgerCounter, ...]
    """Counters with limits that refuse once they have been passed."""

    @classmethod
    def of(cls, tag: str, counters: tuple[LedgerCounter, ...]) -> LedgerSlot:
        """Return the slot of counters."""
        return cls(
            tag,
            counters,
            [f"{tag}:open", changed_key(tag), *(counter.key for counter in counters)],
            [word for counter in counters for word in counter.before.as_words()],
            not all(counter.before.are_none for counter in counters),
            tuple(counter for counter in counters if not counter.after.are_none),
        )

    def position_key(self, replica: str, day: int) -> str:
        """Return the key of how far a replica's log is counted here, for what has no reservation."""
        own = (counter.key for counter in self.counters[1:])
        return ":".join((self.tag, "at", replica, str(day), *own))


def changed_key(tag: str) -> str:
    """Return the key of the set of counters that the next checkpoint writes."""
    return f"{tag}:changed"


class Budgets:
    """The budgets of a configuration, by what they limit."""

    def __init__(self, configuration: DoorConfiguration) -> None:
        self._limits: dict[tuple[BudgetScope, str], tuple[CounterLimits, CounterLimits]] = {}
        for scope, name in {(budget.scope, budget.name) for budget in configuration.budgets}:
            own = [each for each in configuration.budgets if (each.scope, each.name) == (scope, name)]
            self._limits[scope, name] = _both(own)
        self._callers: dict[tuple[str, str | None, str | None, DoorBudget | None], LedgerSlot] = {}
        self._models = {
            model.name: LedgerSlot.of(
                model_tag(model.name), (self._counter("model", model.name, model_tag(model.name)),)
            )
            for model in configuration.models
            if ("model", model.name) in self._limits
        }
        teams = [team_tag(name) for name in configuration.charged_teams]
        self.tags = (*teams, *(slot.tag for slot in self._models.values()))

    def of_caller(
        self, team: str, project: str | None, key: str | None, budget: DoorBudget | None = None
    ) -> LedgerSlot:
        """Return the counters of a caller: of its team, its key, and of its project if that has a budget.

        Teams and keys are counted without a budget too, so that one that is added later knows what was
        spent. Callers may invent projects, so those have a counter only with a budget.

        budget: Limits that the key has of its own.
        """
        found = self._callers.get((team, project, key, budget))
        if found is None:
            found = self._of_caller(team, project, key, budget)
            if len(self._callers) > _MOST_CALLERS:
                self._callers.clear()
            self._callers[team, project, key, budget] = found
        return found

    def counts_invented(self, team: str, project: str) -> bool:
        """Return whether a project has a counter only because each project of its team has one."""
        limits = self._limits
        return ("project", f"{team}/{_EACH}") in limits and ("project", f"{team}/{project}") not in limits

    def of_model(self, model: str) -> LedgerSlot | None:
        """Return the counter of a model. None if it has no budget."""
        return self._models.get(model)

    def limits(self, key: str) -> bool:
        """Return whether a budget of the configuration limits the counter of a key in the store."""
        tag, _, name = key.partition("}")
        subject = tag.removeprefix("door:{")
        if subject.startswith("/") or not name:
            scope: BudgetScope = "model" if subject.startswith("/") else "team"
            return (scope, subject.removeprefix("/")) in self._limits
        kind, _, own = name.removeprefix(":").partition(":")
        if kind == "p":
            return True
        return bool({("key", own), ("key", _EACH)} & self._limits.keys())

    def _of_caller(
        self, team: str, project: str | None, key: str | None, budget: DoorBudget | None
    ) -> LedgerSlot:
        tag = team_tag(team)
        counters = [self._counter("team", team, tag)]
        name = f"{team}/{project}"
        if project is not None and {("project", name), ("project", f"{team}/{_EACH}")} & self._limits.keys():
            counters.append(self._counter("project", name, f"{tag}:p:{project}"))
        if key is not None:
            counters.append(self._counter("key", key, f"{tag}:k:{key}", budget))
        return LedgerSlot.of(tag, tuple(counters))

    def _counter(
        self, scope: BudgetScope, name: str, key: str, budget: DoorBudget | None = None
    ) -> LedgerCounter:
        each = f"{name.partition('/')[0]}/{_EACH}" if scope == "project" else _EACH
        before, after = self._limits.get((scope, name)) or self._limits.get((scope, each)) or _UNLIMITED
        if budget:
            own_before, own_after = _both([budget])
            before, after = before.stricter(own_before), after.stricter(own_after)
        return LedgerCounter(scope, name, key, before, after)


#: Callers may name projects, so what is remembered of them has a bound.
_MOST_CALLERS: Final = 50_000
_UNLIMITED: Final = (NO_LIMITS, NO_LIMITS)


def _both(budgets: Sequence[DoorBudget]) -> tuple[CounterLimits, CounterLimits]:
    """Return the limits of budgets that refuse before, and of those that refuse after."""
    found = []
    for when in ("before", "after"):
        limits = NO_LIMITS
        for each in budgets:
            if each.enforce == when:
                money = (each.nano_per_day, each.nano_per_month)
                given = (*money, each.requests_per_minute, each.tokens_per_minute, each.requests_at_once)
                limits = limits.stricter(CounterLimits(*(_NONE if n is None else n for n in given)))
        found.append(limits)
    return found[0], found[1]
