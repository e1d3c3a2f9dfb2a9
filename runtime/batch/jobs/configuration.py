"""Who may submit what: the platform's queues and teams, one JSON document.

.. code-block:: json

   {"platform": "chat",
    "queues": [{"name": "nightly", "model": "qwen3-8b", "priority": 10, "deadlineHours": 24,
                "capacity": {"inputTokensPerSecond": 40000, "outputTokensPerSecond": 8000,
                             "usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4},
                "limits": {"lines": 1000000}}],
    "teams": [{"name": "search", "principals": ["arn:aws:iam::111122223333:role/Search"],
               "monthlyBudgetUsd": 1000, "dataPrefixes": ["s3://search-data/prompts/"]}],
    "signals": [{"name": "product-captions", "team": "search", "ttlHours": 72}]}

Signals may be left out, where answers go nowhere but into files.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from batch.contracts.request import Capacity, Limits
from batch.jobs import principals

_Part = TypeVar("_Part")


class ConfigurationError(Exception):
    """A document that is wrong, everything about it in one message."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Where jobs wait for one model.

    Parameters
    ----------
    name, model
        Its name, and the name under which the endpoint serves its model.
    priority
        Of its jobs where they ask for none; higher goes first.
    deadline_hours
        Hours after which a job must be finished, at most.
    capacity
        What its model does and costs.
    limits
        What a job may hold.
    """

    name: str
    model: str
    priority: int
    deadline_hours: float
    capacity: Capacity
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Team:
    """Who submits.

    Parameters
    ----------
    name
        Its name.
    principals
        ARNs of the roles and users that are it.
    monthly_budget_usd
        What its jobs may cost in a month, in dollars.
    data_prefixes
        Prefixes in S3, ``s3://bucket/prefix/``, below which its inputs and images lie.
    """

    name: str
    principals: tuple[str, ...]
    monthly_budget_usd: float
    data_prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredSignal:
    """A signal that jobs of one team may write.

    Parameters
    ----------
    name, team
        Its name, and whose it is.
    ttl_hours
        Hours after which a value is no longer true.
    """

    name: str
    team: str
    ttl_hours: float


@dataclass(frozen=True, slots=True)
class Configuration:
    """The document.

    Parameters
    ----------
    platform
        The platform's name; tokens are made for it alone.
    queues, teams, signals
        Its queues, teams and signals.
    """

    platform: str
    queues: tuple[Queue, ...]
    teams: tuple[Team, ...]
    signals: tuple[DeclaredSignal, ...] = ()

    def queue(self, name: str) -> Queue | None:
        """Return a queue by its name; None if there is none."""
        return next((queue for queue in self.queues if queue.name == name), None)

    def team(self, name: str) -> Team | None:
        """Return a team by its name; None if there is none."""
        return next((team for team in self.teams if team.name == name), None)

    def signals_of(self, team: str) -> dict[str, DeclaredSignal]:
        """Return the signals that a team's jobs may write, by name."""
        return {signal.name: signal for signal in self.signals if signal.team == team}

    def team_of(self, arn: str) -> Team | None:
        """Return the team that a caller belongs to; None if there is none.

        Parameters
        ----------
        arn
            ARN of a role, of a session of it, or of a user.
        """
        caller = principals.canonical(arn)
        if caller is None:
            return None
        return next(
            (team for team in self.teams if caller in map(principals.canonical, team.principals)), None
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Configuration:
        """Read the document.

        Raises
        ------
        ConfigurationError
            If it is none.
        """
        try:
            values = json.loads(text)
            found = cls(
                platform=values["platform"],
                queues=tuple(map(_queue, values["queues"])),
                teams=tuple(_part(Team, each) for each in values["teams"]),
                signals=tuple(_part(DeclaredSignal, each) for each in values.get("signals", [])),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"the queues and teams cannot be read: {error!r}") from error
        problems = _problems(found)
        if problems:
            raise ConfigurationError("; ".join(problems))
        return found


def _queue(values: Mapping[str, Any]) -> Queue:
    """Read a queue."""
    return _part(
        Queue,
        {
            **values,
            "capacity": _part(Capacity, values["capacity"]),
            "limits": _part(Limits, values.get("limits", {})),
        },
    )


def _part(kind: type[_Part], values: Mapping[str, Any]) -> _Part:
    """Read a data class whose fields are in camelCase; a list becomes a tuple."""
    arguments = {
        re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", key): tuple(value)
        if isinstance(value, list)
        else value
        for key, value in values.items()
    }
    return kind(**arguments)


def _problems(configuration: Configuration) -> list[str]:
    """Return what is wrong with a document that can be read."""
    problems = [
        f"{what} {name} is there {number} times"
        for what, names in (
            ("queue", [queue.name for queue in configuration.queues]),
            ("team", [team.name for team in configuration.teams]),
            ("signal", [signal.name for signal in configuration.signals]),
        )
        for name, number in Counter(names).items()
        if number > 1
    ]
    if not configuration.queues:
        problems.append("there is no queue, must be one at least")
    owners: dict[str, list[str]] = {}
    for team in configuration.teams:
        for arn in team.principals:
            name = principals.canonical(arn)
            if name is None:
                problems.append(f"team {team.name}: {arn} is not {principals.ALLOWED}")
            else:
                owners.setdefault(name, []).append(team.name)
        problems += _prefix_problems(team)
    problems += [
        f"{arn} is in teams {' and '.join(teams)}" for arn, teams in owners.items() if len(teams) > 1
    ]
    return problems


def _prefix_problems(team: Team) -> Sequence[str]:
    """Return the prefixes of a team that are none."""
    return [
        f"team {team.name}: {prefix} is not s3://bucket/prefix/ with a slash at its end"
        for prefix in team.data_prefixes
        if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(.+/)?", prefix)
    ]
