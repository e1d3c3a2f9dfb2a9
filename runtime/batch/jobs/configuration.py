"""Queues and teams of the platform, as one JSON document.

.. code-block:: json

   {"platform": "chat",
    "queues": [{"name": "nightly", "model": "qwen3-8b", "priority": 10, "deadlineHours": 24,
                "capacity": {"inputTokensPerSecond": 40000, "outputTokensPerSecond": 8000,
                             "usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4},
                "limits": {"lines": 1000000}}],
    "teams": [{"name": "search", "principals": ["arn:aws:iam::111122223333:role/Search"],
               "monthlyBudgetUsd": 1000, "dataPrefixes": ["s3://search-data/prompts/"]}],
    "signals": [{"name": "product-captions", "team": "search", "ttlHours": 72}]}

Signals may be omitted if answers go only to files.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from batch.contracts.request import Capacity, JobLimits
from batch.jobs import principals
from batch.json_record import JsonRecord
from inference_contracts.batch_body_fields import BODY_FIELDS, IMAGES_PATH
from inference_contracts.request_limits import RequestLimits

_IMAGES: Final = (IMAGES_PATH,)
_TEXT: Final = tuple(path for path in BODY_FIELDS if path != IMAGES_PATH)


class ConfigurationError(Exception):
    """An invalid document. One message names all problems."""


@dataclass(frozen=True, slots=True)
class Queue(JsonRecord):
    """A queue of jobs for one model.

    Parameters
    ----------
    name, model
        The queue's name, and the name under which the endpoint serves its model.
    priority
        Default priority of its jobs. Higher goes first.
    deadline_hours
        Longest deadline, in hours.
    capacity
        Throughput and prices of its model.
    limits
        Limits of a job.
    keep_days
        Days after which the results of a job are deleted.
    image_steps
        Steps of an image whose line names none; 0 if its model makes no images.
    request_limits
        Limits of a request, beyond which it ends an engine or is compiled for minutes, as `RequestLimits`
        records them. None if the engine has none.
    """

    name: str
    model: str
    priority: int
    deadline_hours: float
    capacity: Capacity
    limits: JobLimits = field(default_factory=JobLimits)
    keep_days: int = 30
    image_steps: int = 0
    request_limits: Mapping[str, Any] | None = None

    @property
    def endpoints(self) -> tuple[str, ...]:
        """API paths that its jobs may have. The first is the default."""
        return _IMAGES if self.image_steps else _TEXT


@dataclass(frozen=True, slots=True)
class BatchTeam(JsonRecord):
    """A team that submits jobs.

    Parameters
    ----------
    principals
        ARNs of the team's roles and users.
    monthly_budget_usd
        Monthly cost limit of the team's jobs, in dollars.
    data_prefixes
        Prefixes in S3, ``s3://bucket/prefix/``, that may contain inputs and images.
    max_priority
        Highest priority of its jobs.
    max_places_percent
        Largest share of a model's places that its jobs hold, in percent.
    """

    name: str
    principals: tuple[str, ...]
    monthly_budget_usd: float
    data_prefixes: tuple[str, ...] = ()
    max_priority: int = 100
    max_places_percent: int = 100

    def most_places(self, places: int) -> int:
        """Return the number of a model's places that the team's jobs may hold; at least one."""
        return max(1, places * self.max_places_percent // 100)


@dataclass(frozen=True, slots=True)
class DeclaredSignal(JsonRecord):
    """A signal that the jobs of one team may write.

    Parameters
    ----------
    name, team
        The signal's name, and its team.
    ttl_hours
        Hours after which a value expires.
    """

    name: str
    team: str
    ttl_hours: float


@dataclass(frozen=True, slots=True)
class Configuration(JsonRecord):
    """The queues, teams and signals of a platform.

    Parameters
    ----------
    platform
        The platform's name. A token is valid for one platform.
    queues, teams, signals
        Its queues, teams and signals.
    """

    platform: str
    queues: tuple[Queue, ...]
    teams: tuple[BatchTeam, ...]
    signals: tuple[DeclaredSignal, ...] = ()

    def queue(self, name: str) -> Queue | None:
        return next((queue for queue in self.queues if queue.name == name), None)

    def team(self, name: str) -> BatchTeam | None:
        return next((team for team in self.teams if team.name == name), None)

    def places(self, model: str) -> int:
        """Return the shards that a model's workers run at the same time; 0 if no queue has the model."""
        return max((queue.capacity.places for queue in self.queues if queue.model == model), default=0)

    def request_limits(self, model: str) -> RequestLimits | None:
        """Return the limits of a model's requests; None if no queue has any for the model."""
        records = (queue.request_limits for queue in self.queues if queue.model == model)
        record = next(records, None)
        return None if record is None else RequestLimits.from_record(record)

    def signals_of(self, team: str) -> dict[str, DeclaredSignal]:
        """Return the signals that a team's jobs may write, by name."""
        return {signal.name: signal for signal in self.signals if signal.team == team}

    def team_of(self, arn: str) -> BatchTeam | None:
        """Return the team of a caller; None if it has none.

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
    def from_json(cls, text: str | bytes) -> Self:
        """Read the document. Raises ConfigurationError if it is invalid."""
        try:
            # `super()` without arguments fails in a data class with slots, because `slots=True` replaces the
            # class.
            found = super(Configuration, cls).from_values(_snake_case(json.loads(text)))
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"the queues and teams cannot be read: {error!r}") from error
        problems = _problems(found)
        if problems:
            raise ConfigurationError("; ".join(problems))
        return found


def _snake_case(value: Any) -> Any:
    """Convert the keys of a document from camelCase, as the blueprint writes them, to snake_case."""
    if isinstance(value, dict):
        return {
            re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", key): _snake_case(each)
            for key, each in value.items()
        }
    return [_snake_case(each) for each in value] if isinstance(value, list) else value


def _problems(configuration: Configuration) -> list[str]:
    """Return the problems of a document that has the right types."""
    problems = [
        f"{what} {name} is listed {number} times"
        for what, names in (
            ("queue", [queue.name for queue in configuration.queues]),
            ("team", [team.name for team in configuration.teams]),
            ("signal", [signal.name for signal in configuration.signals]),
        )
        for name, number in Counter(names).items()
        if number > 1
    ]
    if not configuration.queues:
        problems.append("there is no queue, must be at least one")
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


def _prefix_problems(team: BatchTeam) -> Sequence[str]:
    """Return the invalid prefixes of a team."""
    return [
        f"team {team.name}: {prefix} is not s3://bucket/prefix/ with a slash at its end"
        for prefix in team.data_prefixes
        if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(.+/)?", prefix)
    ]
